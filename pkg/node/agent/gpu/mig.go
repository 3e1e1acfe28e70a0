package gpu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/node/agent/replace"
)

// MIG describes how the hardware splits a GPU into instances (Multi-Instance GPU).
type MIG struct {
	// Enabled means that the GPU can only be used through its instances. Pending is the value after its next reset.
	Enabled bool `json:"enabled,omitempty"`
	Pending bool `json:"pending,omitempty"`
	// Instances are in the order of their places.
	Instances []Instance `json:"instances,omitempty"`
}

// Instance is a part of a GPU with its own processors and memory: a compute instance in a GPU instance.
type Instance struct {
	// Profile is NVIDIA's name of its size, such as 1g.10gb, or 1c.2g.20gb if it doesn't have all processors of its GPU instance.
	Profile string `json:"profile"`
	// GI and CI are the numbers of the GPU instance and the compute instance, which are in the names of the driver's device files. Place is
	// where it begins in the GPU's memory, in slices.
	GI    int    `json:"gi"`
	CI    int    `json:"ci"`
	Place uint32 `json:"place"`
	UUID  string `json:"uuid"`
	// Memory is in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// Files are the device files of a simulated instance. nvidia-ctk reports the device files of real instances.
	Files []File `json:"files,omitempty"`
	// Facts are values for labels of a Node, by the suffixes of the labels' names.
	Facts map[string]string `json:"facts,omitempty"`
	// Values are its measurements. Its utilization isn't among them: NVML doesn't report it for instances.
	Values map[string]float64 `json:"values,omitempty"`
}

// SplitInto reports whether a GPU has n instances of a profile and no others.
func (m *MIG) SplitInto(profile string, n int) bool {
	return m != nil && m.Enabled && len(m.Instances) == n && !slices.ContainsFunc(m.Instances, func(i Instance) bool { return i.Profile != profile })
}

// String describes how the GPU is split.
func (m *MIG) String() string {
	switch {
	case m == nil || !m.Enabled:
		return "one piece"
	case len(m.Instances) == 0:
		return "no instances"
	}
	count := map[string]int{}
	for _, i := range m.Instances {
		count[i.Profile]++
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d x %s", count[name], name))
	}
	return strings.Join(out, ", ")
}

// Named returns the names of the instances. While the result is unchanged, the edits for containers are valid.
func (m *MIG) Named() string {
	if m == nil || !m.Enabled {
		return ""
	}
	out := "MIG"
	for _, i := range m.Instances {
		out += fmt.Sprintf(" %s/%d/%d/%s", i.UUID, i.GI, i.CI, i.Profile)
	}
	return out
}

// Split defines how to split a GPU.
type Split struct {
	// Profile is the profile of all instances, or "" for a GPU in one piece. Instances is their number.
	Profile   string `json:"profile"`
	Instances int    `json:"instances"`
}

// Outcome is the result of splitting a GPU, as pai-nvml writes it.
type Outcome struct {
	// Reset means that the split takes effect when the GPU is reset.
	Reset bool `json:"reset,omitempty"`
	// Busy describes the users of the GPU, "" if the split succeeded.
	Busy string `json:"busy,omitempty"`
}

// BusyError is the error for a GPU that can't be split while a program uses it.
type BusyError struct{ Why string }

func (e *BusyError) Error() string { return e.Why }

// SplitsFile is the name of the file with the splits of a machine's simulated GPUs, in the folder of the agent's driver.
const SplitsFile = "splits.json"

// ReadSplits reads the splits of simulated GPUs, by index. GPUs that aren't in the file aren't split; if the file doesn't exist, no GPU is split.
func ReadSplits(file string) (map[int32]Split, error) { return readByIndex[Split](file) }

// WriteSplit writes the split of a simulated GPU.
func WriteSplit(file string, index int32, s Split) error {
	splits, err := ReadSplits(file)
	if err != nil {
		return err
	}
	if splits[index] = s; s.Profile == "" {
		delete(splits, index)
	}
	data, err := json.Marshal(splits)
	if err != nil {
		return err
	}
	return replace.File(file, append(data, '\n'), 0o600)
}

// Minors returns the minor numbers of the device files for an instance: ofGI for its GPU instance and ofCI for its compute
// instance. gpu is the GPU's own minor number. The driver checks with these files whether a program may use the instance. Drivers
// list their numbers in /proc/driver/nvidia-caps/mig-minors; simulated drivers use the same numbers.
func Minors(gpu int32, gi, ci int) (ofGI, ofCI int) {
	const first, perCI, perGPU = 3, 9, 15 * 9 // after the capabilities of mig/config and mig/monitor
	ofGI = first + int(gpu)*perGPU + gi*perCI
	return ofGI, ofGI + 1 + ci
}

// SimulatedInstanceFiles returns the device files of an instance of a simulated GPU.
func SimulatedInstanceFiles(index int32, gi, ci int) []File {
	out := SimulatedFiles(index)
	ofGI, ofCI := Minors(index, gi, ci)
	for _, minor := range []int{ofGI, ofCI} {
		out = append(out, File{Host: "/dev/null", Container: fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor)})
	}
	return out
}

// byPlace orders instances by place.
func byPlace(a, b Instance) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.CI, b.CI))
}

// Sort sorts the instances by place.
func (m *MIG) Sort() { slices.SortFunc(m.Instances, byPlace) }
