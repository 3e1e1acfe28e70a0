package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PartsSuffix separates the name of a leaf type from the number of parts per GPU, as in A100-PART-4.
const PartsSuffix = "-PART-"

// PartsOf returns the number of parts per GPU in the name of a leaf type. It returns 1 if GPUs aren't split.
func PartsOf(leafType string) int {
	_, number, _ := strings.Cut(leafType, PartsSuffix)
	if n, err := strconv.Atoi(number); err == nil && n > 1 {
		return n
	}
	return 1
}

// migMark precedes the profile of MIG instances in the name of a leaf type.
const migMark = "-MIG-"

// MIGSuffix returns the end of a leaf type's name for MIG instances of a profile, as in A100-MIG-1G-10GB. It replaces dots,
// because names of cell types contain no dots.
func MIGSuffix(profile string) string {
	return migMark + strings.ToUpper(strings.ReplaceAll(profile, ".", "-"))
}

// migOf returns the result of MIGSuffix in a leaf type's name, or "" if the leaves aren't instances.
func migOf(leafType string) string {
	if i := strings.LastIndex(leafType, migMark); i >= 0 {
		return leafType[i:]
	}
	return ""
}

// handsOut describes the devices that an agent allocates.
func (n *NodeDevices) handsOut() string {
	if n.MIG != "" {
		return "instances of the profile " + n.MIG
	}
	return fmt.Sprintf("each GPU in %d", max(n.Parts, 1))
}

// splitAs reports whether an agent splits GPUs as the leaf type requires. For MIG, only the profiles must match, because the
// model and the profile determine the number of instances.
func (n *NodeDevices) splitAs(leafType string) bool {
	mig := migOf(leafType)
	if n.MIG != "" || mig != "" {
		return n.MIG != "" && MIGSuffix(n.MIG) == strings.ToUpper(mig)
	}
	return max(n.Parts, 1) == PartsOf(leafType)
}

// CompareNode compares the configured GPUs of a node with the node's report. text is the report, or "".
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
	// The same device number then means a different GPU. The agent or the scheduler may not have applied a change yet.
	if len(configured) > 0 && !told.splitAs(leafType) {
		out.Unhealthy, out.disagree = slices.Clone(configured), true
		said := strconv.Itoa(PartsOf(leafType))
		if told.MIG != "" || migOf(leafType) != "" {
			said = "otherwise"
		}
		out.Why = []string{fmt.Sprintf("the agent allocates %s, but the scheduler's cells (%s) say %s", told.handsOut(), leafType, said)}
		return out
	}
	for _, index := range configured {
		i := slices.IndexFunc(told.Devices, func(d Device) bool { return d.Index == index })
		switch {
		case i < 0:
			out.Missing = append(out.Missing, index)
		case told.Devices[i].ForPods: // the agent would reject a job for it, because either the agent or the scheduler hasn't applied a change yet
			out.Unhealthy, out.disagree = append(out.Unhealthy, index), true
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

// OnlyFailed reports whether broken GPUs are the only difference from the configuration.
func (n *Node) OnlyFailed() bool {
	return n.Problem == "" && !n.disagree && len(n.Unhealthy) > 0 && len(n.Missing) == 0 && len(n.Unexpected) == 0
}

// Difference describes the differences from the configuration, or returns "".
func (n *Node) Difference() string {
	if n.Problem != "" {
		return n.Problem
	}
	var parts []string
	for _, p := range []struct {
		indices []int32
		text    string
	}{
		{n.Missing, "GPUs %v of the configuration are missing"},
		{n.Unhealthy, "GPUs %v are not healthy"},
		{n.Unexpected, "GPUs %v are not in the configuration and not used"},
	} {
		if len(p.indices) > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.indices))
		}
	}
	return strings.Join(append(parts, n.Why...), "; ")
}
