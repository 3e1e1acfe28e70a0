package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PartsSuffix stands in the name of a leaf type before the number of parts into which each GPU is split for it, as in A100-PART-4.
const PartsSuffix = "-PART-"

// PartsOf is into how many parts each GPU is split for leaves of a type, by its name; 1 where it isn't split.
func PartsOf(leafType string) int {
	_, number, _ := strings.Cut(leafType, PartsSuffix)
	if n, err := strconv.Atoi(number); err == nil && n > 1 {
		return n
	}
	return 1
}

// CompareNode holds the GPUs of the configuration, which are of a leaf type, against those that a node tells, if it does.
func CompareNode(name, leafType string, configured []int32, text string) Node {
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
	// Numbers of devices mean other GPUs where one of both hasn't heard of a change yet, or never will.
	if parts := PartsOf(leafType); len(configured) > 0 && max(told.Parts, 1) != parts {
		out.Unhealthy = slices.Clone(configured)
		out.Why = []string{fmt.Sprintf("the agent hands out each GPU in %d, and the scheduler's cells (%s) say %d", max(told.Parts, 1), leafType, parts)}
		return out
	}
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
