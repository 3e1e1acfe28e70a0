package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// CompareNode holds the GPUs of the configuration against those that a node tells, if it does.
func CompareNode(name string, configured []int32, text string) Node {
	out := Node{Name: name, Configured: configured}
	if text == "" {
		return out
	}
	var told NodeDevices
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		out.Problem = fmt.Sprintf("the annotation %s can't be read: %v", DevicesAnnotation, err)
		return out
	}
	out.Reported = true
	for _, index := range configured {
		i := slices.IndexFunc(told.Devices, func(d Device) bool { return d.Index == index })
		switch {
		case i < 0:
			out.Missing = append(out.Missing, index)
		case told.Devices[i].ForPods: // the agent would refuse it to a job; one of both hasn't heard of a change yet
			out.Unhealthy = append(out.Unhealthy, index)
			out.Why = append(out.Why, fmt.Sprintf("GPU %d: it is for ordinary pods", index))
		case !told.Devices[i].Healthy:
			out.Unhealthy = append(out.Unhealthy, index)
			if reason := told.Devices[i].Reason; reason != "" {
				out.Why = append(out.Why, fmt.Sprintf("GPU %d: %s", index, reason))
			}
		}
	}
	for _, d := range told.Devices {
		if !d.ForPods && !slices.Contains(configured, d.Index) && !slices.Contains(out.Unexpected, d.Index) {
			out.Unexpected = append(out.Unexpected, d.Index)
		}
	}
	slices.Sort(out.Unexpected)
	return out
}

// Difference says in words how a node differs from the configuration, "" if it doesn't.
func (n *Node) Difference() string {
	if n.Problem != "" {
		return n.Problem
	}
	var parts []string
	for _, p := range []struct {
		indices []int32
		text    string
	}{
		{n.Missing, "GPUs %v of the configuration are not there"},
		{n.Unhealthy, "GPUs %v are not healthy"},
		{n.Unexpected, "GPUs %v are not in the configuration and not used"},
	} {
		if len(p.indices) > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.indices))
		}
	}
	return strings.Join(append(parts, n.Why...), "; ")
}
