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
	// Instances are sorted by Place.
	Instances []Instance `json:"instances,omitempty"`
}

// Instance is a part of a GPU with its own processors and memory. Instance is a compute instance in a GPU instance.
type Instance struct {
	// Profile is NVIDIA's name of the instance's size, such as 1g.10gb. The form is 1c.2g.20gb if the compute instance has only some of the processors of
	// the GPU instance.
	Profile string `json:"profile"`
	// GI and CI are the numbers of the GPU instance and the compute instance. The names of the driver's device files contain these numbers. Place is the
	// position of the instance in the GPU's memory, in slices.
	GI    int    `json:"gi"`
	CI    int    `json:"ci"`
	Place uint32 `json:"place"`
	UUID  string `json:"uuid"`
	// Memory is the size of the instance's memory in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// Files are the device files of a simulated instance. nvidia-ctk reports the device files of real instances.
	Files []File `json:"files,omitempty"`
	// Facts are values for labels of a Node. The keys are suffixes of label names.
	Facts map[string]string `json:"facts,omitempty"`
	// Values are the measurements of the instance. NVML doesn't report the utilization of instances.
	Values map[string]float64 `json:"values,omitempty"`
}

// SplitInto reports whether the GPU is split into exactly n instances of the profile.
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

// Named returns a text with the names of all instances. Edits for containers stay valid while this text is unchanged.
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
	// Profile is the profile of all instances, or "" for an undivided GPU. Instances is the number of instances.
	Profile   string `json:"profile"`
	Instances int    `json:"instances"`
}

// Outcome is the result of splitting a GPU. pai-nvml writes it as JSON.
type Outcome struct {
	// Reset means that the split takes effect after the next reset of the GPU.
	Reset bool `json:"reset,omitempty"`
	// Busy lists the programs that use the GPU and prevent the split. Busy is "" if the split succeeded.
	Busy string `json:"busy,omitempty"`
}

// BusyError is the error of a split while a program uses the GPU.
type BusyError struct{ Why string }

func (e *BusyError) Error() string { return e.Why }

// SplitsFile is the name of the file with the splits of simulated GPUs. The file is in the folder of the agent's driver.
const SplitsFile = "splits.json"

// ReadSplits reads the splits of simulated GPUs, by index. GPUs that aren't in the file aren't split. A missing file means that no GPU is split.
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

// Minors returns the minor numbers of an instance's device files. ofGI belongs to the GPU instance, and ofCI belongs to the compute instance. gpu is
// the minor number of the GPU. The permissions of these files determine whether a program may use the instance. Real drivers list the numbers in
// /proc/driver/nvidia-caps/mig-minors. Simulated drivers use the same numbers.
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

func byPlace(a, b Instance) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.CI, b.CI))
}

// Sort sorts the instances by Place.
func (m *MIG) Sort() { slices.SortFunc(m.Instances, byPlace) }
