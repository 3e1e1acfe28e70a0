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

// MIG is how the hardware splits a GPU into instances (Multi-Instance GPU).
type MIG struct {
	// Enabled: the GPU is only used through its instances. Pending is the same after its next reset.
	Enabled bool `json:"enabled,omitempty"`
	Pending bool `json:"pending,omitempty"`
	// Instances are in the order of their places.
	Instances []Instance `json:"instances,omitempty"`
}

// Instance is a part of a GPU with its own processors and memory: a compute instance in a GPU instance.
type Instance struct {
	// Profile is its size by NVIDIA's name, such as 1g.10gb, or 1c.2g.20gb if it doesn't have all processors of its GPU instance.
	Profile string `json:"profile"`
	// GI and CI are the numbers of both, by which the driver names its device files. Place is where in the GPU's memory it begins, in slices.
	GI    int    `json:"gi"`
	CI    int    `json:"ci"`
	Place uint32 `json:"place"`
	UUID  string `json:"uuid"`
	// Memory is in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// Files are the device files of a simulated instance. nvidia-ctk reports those of real ones.
	Files []File `json:"files,omitempty"`
	// Facts are values for labels of a Node, by the ends of the labels' names.
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

// Named names the instances. While it is unchanged, the edits for containers are valid.
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

// Split is how a GPU is to be split.
type Split struct {
	// Profile is the profile of all instances, "" for a GPU in one piece, and Instances their number.
	Profile   string `json:"profile"`
	Instances int    `json:"instances"`
}

// Outcome is the result of splitting a GPU, as pai-nvml writes it.
type Outcome struct {
	// Reset: the split takes effect when the GPU is reset.
	Reset bool `json:"reset,omitempty"`
	// Busy describes the users of the GPU, "" if the split succeeded.
	Busy string `json:"busy,omitempty"`
}

// BusyError is the error for a GPU that can't be split while a program uses it.
type BusyError struct{ Why string }

func (e *BusyError) Error() string { return e.Why }

// SplitsFile is the name of the file that says how a machine's simulated GPUs are split, in the folder of the agent's driver.
const SplitsFile = "splits.json"

// ReadSplits reads how simulated GPUs are split, by index. GPUs that aren't in the file aren't split, and none is split if the file doesn't exist.
func ReadSplits(file string) (map[int32]Split, error) { return readByIndex[Split](file) }

// WriteSplit records how a simulated GPU is split.
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

// Minors are the minor numbers of the device files of an instance of a GPU (its own minor number), by which the driver lets programs
// use it: of its GPU instance and of its compute instance. Drivers list theirs in /proc/driver/nvidia-caps/mig-minors; simulated
// drivers use the same numbers.
func Minors(gpu int32, gi, ci int) (ofGI, ofCI int) {
	const first, perCI, perGPU = 3, 9, 15 * 9 // after the capabilities of mig/config and mig/monitor
	ofGI = first + int(gpu)*perGPU + gi*perCI
	return ofGI, ofGI + 1 + ci
}

// SimulatedInstanceFiles are the device files of an instance of a simulated GPU.
func SimulatedInstanceFiles(index int32, gi, ci int) []File {
	out := SimulatedFiles(index)
	ofGI, ofCI := Minors(index, gi, ci)
	for _, minor := range []int{ofGI, ofCI} {
		out = append(out, File{Host: "/dev/null", Container: fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor)})
	}
	return out
}

// byPlace orders instances.
func byPlace(a, b Instance) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.CI, b.CI))
}

// Sort brings the instances into the order of their places.
func (m *MIG) Sort() { slices.SortFunc(m.Instances, byPlace) }
