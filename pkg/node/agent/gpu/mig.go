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
	// Enabled means that programs can use the GPU only through its instances. Pending is the value of Enabled after the next reset.
	Enabled bool `json:"enabled,omitempty"`
	Pending bool `json:"pending,omitempty"`
	// Instances are sorted by their places.
	Instances []Instance `json:"instances,omitempty"`
}

// Instance is a part of a GPU with its own processors and memory: a compute instance in a GPU instance.
type Instance struct {
	// Profile is NVIDIA's name for the size of the instance, such as 1g.10gb, or 1c.2g.20gb if the instance doesn't have all processors of its GPU
	// instance.
	Profile string `json:"profile"`
	// GI and CI are the numbers of the GPU instance and the compute instance, which the names of the driver's device files contain. Place is where
	// the instance begins in the GPU's memory, in slices.
	GI    int    `json:"gi"`
	CI    int    `json:"ci"`
	Place uint32 `json:"place"`
	UUID  string `json:"uuid"`
	// Memory is the size of the instance's memory in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// Files are the device files of a simulated instance. nvidia-ctk reports the device files of real instances.
	Files []File `json:"files,omitempty"`
	// Facts are values for labels of a Node. The keys are the suffixes of the labels' names.
	Facts map[string]string `json:"facts,omitempty"`
	// Values are the measurements of the instance. They don't include the utilization, because NVML doesn't report it for instances.
	Values map[string]float64 `json:"values,omitempty"`
}

// SplitInto reports whether the GPU is split into exactly n instances, all of which have the profile.
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

// Named returns a text with the names of all instances. The edits for containers stay valid as long as this text stays the same.
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
	// Profile is the profile of all instances, or "" for a GPU in one piece. Instances is the number of instances.
	Profile   string `json:"profile"`
	Instances int    `json:"instances"`
}

// Outcome is the result of splitting a GPU, as pai-nvml writes it.
type Outcome struct {
	// Reset means that the split takes effect only when the GPU is reset.
	Reset bool `json:"reset,omitempty"`
	// Busy names the programs that use the GPU and keep it from being split. It is "" if the split succeeded.
	Busy string `json:"busy,omitempty"`
}

// BusyError is the error for a GPU that can't be split while a program uses it.
type BusyError struct{ Why string }

func (e *BusyError) Error() string { return e.Why }

// SplitsFile is the name of the file with the splits of a machine's simulated GPUs, in the folder of the agent's driver.
const SplitsFile = "splits.json"

// ReadSplits reads the splits of simulated GPUs, by index. A GPU that isn't in the file isn't split. If the file doesn't exist, no GPU is split.
func ReadSplits(file string) (map[int32]Split, error) { return readByIndex[Split](file) }

// WriteSplit writes the split of a simulated GPU to the file.
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

// Minors returns the minor numbers of an instance's device files: ofGI for its GPU instance and ofCI for its compute instance. gpu is the minor
// number of the GPU. The permissions of these files determine whether a program may use the instance. Real drivers list the numbers in
// /proc/driver/nvidia-caps/mig-minors, and simulated drivers use the same numbers.
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

// byPlace compares instances by their places.
func byPlace(a, b Instance) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.CI, b.CI))
}

// Sort sorts the instances by their places.
func (m *MIG) Sort() { slices.SortFunc(m.Instances, byPlace) }
