// Package gpu tells which GPUs a machine has.
// In: the machine, or a file that says what it pretends to have. Out: its GPUs, by index.
package gpu

import (
	"encoding/json"
	"fmt"
	"os"
)

// GPU is one of a machine.
type GPU struct {
	// Index is its number on the machine, as NVML counts.
	Index int32
	// UUID is the same wherever the GPU is built in.
	UUID string
	// Model is its name, such as NVIDIA-A100-SXM4-80GB.
	Model string
	// Simulated GPUs stand for real ones where there are none: their device files do nothing.
	Simulated bool
	// Files are the device files that a container needs to use it.
	Files []File
}

// File is a device file.
type File struct {
	// Host is its path on the machine, Container the one in a container.
	Host, Container string
}

// Simulated are the GPUs that a machine pretends to have.
type Simulated struct {
	// Model is the name of all of them.
	Model string `json:"model"`
	Count int    `json:"count"`
}

// mostSimulated is far more than any machine has; each is an entry in an object of the API server.
const mostSimulated = 1024

// ReadSimulated reads the file that says which machines simulate GPUs, as JSON: {"NODE":{"model":"A100","count":8}}. It returns
// those of a node, and none for a node that isn't in it.
func ReadSimulated(file, node string) ([]GPU, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var of map[string]Simulated
	if err := json.Unmarshal(data, &of); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s, ok := of[node]
	switch {
	case !ok:
		return nil, nil
	case s.Model == "":
		return nil, fmt.Errorf("%s: the GPUs of %s have no model", file, node)
	case s.Count < 1 || s.Count > mostSimulated:
		return nil, fmt.Errorf("%s: %s has %d GPUs; it can have 1 to %d", file, node, s.Count, mostSimulated)
	}
	return s.GPUs(node), nil
}

// GPUs returns them as they are on a node. Each has a device file that does what /dev/null does, so that a container has
// exactly those of the GPUs it was given.
func (s Simulated) GPUs(node string) []GPU {
	out := make([]GPU, s.Count)
	for i := range out {
		out[i] = GPU{
			Index: int32(i), UUID: fmt.Sprintf("SIM-%s-%d", node, i), Model: s.Model, Simulated: true,
			Files: []File{{Host: "/dev/null", Container: fmt.Sprintf("/dev/nvidia%d", i)}},
		}
	}
	return out
}
