package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/replace"
)

// AMD is the value of Machine.Vendor for AMD's GPUs.
const AMD = "amd"

// Machine describes the configured GPUs of a machine.
type Machine struct {
	// Model is the model of all GPUs.
	Model string `json:"model"`
	Count int    `json:"count"`
	// Simulated means that the GPUs are simulated.
	Simulated bool `json:"simulated,omitempty"`
	// Parts is the number of jobs that share a GPU, or the number of instances of a GPU. 0 means 1.
	Parts int `json:"parts,omitempty"`
	// MIG is the profile of each GPU's instances. MIG is "" if jobs share a GPU by taking turns. Parts is the number of instances.
	MIG string `json:"mig,omitempty"`
	// ForPods are the indices of the GPUs for ordinary pods. The scheduler allocates the other GPUs to jobs.
	ForPods []int32 `json:"forPods,omitempty"`
	// Vendor is AMD for AMD's GPUs, or "" for NVIDIA's GPUs.
	Vendor string `json:"vendor,omitempty"`
}

// mostGPUs limits the number of GPUs of a machine, because each GPU is an entry in an object of the API server. Real machines have far fewer GPUs.
const mostGPUs = 1024

// ReadMachine reads a JSON file with the GPUs of machines, such as {"NODE":{"model":"A100","count":8,"simulated":true}}. ReadMachine returns the GPUs
// of a node, or the zero value if the file doesn't contain the node.
func ReadMachine(file, node string) (Machine, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Machine{}, err
	}
	var of map[string]Machine
	if err := json.Unmarshal(data, &of); err != nil {
		return Machine{}, fmt.Errorf("%s: %w", file, err)
	}
	m, ok := of[node]
	switch {
	case !ok:
		return Machine{}, nil
	case m.Vendor != "" && m.Vendor != AMD:
		return Machine{}, fmt.Errorf("%s: the GPUs of %s are of %q; this agent supports NVIDIA's and AMD's", file, node, m.Vendor)
	case m.Model == "":
		return Machine{}, fmt.Errorf("%s: the GPUs of %s have no model", file, node)
	case m.Count < 1 || m.Count > mostGPUs:
		return Machine{}, fmt.Errorf("%s: %s has %d GPUs; it can have 1 to %d", file, node, m.Count, mostGPUs)
	case m.Parts < 0 || m.Count*max(m.Parts, 1) > mostGPUs:
		return Machine{}, fmt.Errorf("%s: the GPUs of %s have %d parts each; a machine can have %d in all", file, node, m.Parts, mostGPUs)
	case m.MIG != "" && m.Vendor != "" && !m.Simulated:
		return Machine{}, fmt.Errorf("%s: the GPUs of %s are of %q, and only NVIDIA's are split into instances (MIG)", file, node, m.Vendor)
	}
	return m, nil
}

// SimulatedFiles returns the device files of a simulated GPU. The files behave like /dev/null. A container only contains the device files of its GPUs.
func SimulatedFiles(index int32) []File {
	return []File{{Host: "/dev/null", Container: fmt.Sprintf("/dev/nvidia%d", index)}}
}

// Fault describes the faults of a simulated GPU. The zero value means that the GPU has no faults.
type Fault struct {
	// XID is an error. The driver reports the error once for each value of At.
	XID int `json:"xid,omitempty"`
	// ECC is the number of uncorrectable memory errors of the GPU.
	ECC int `json:"ecc,omitempty"`
	// Lost means that the GPU no longer responds.
	Lost bool `json:"lost,omitempty"`
	// Hot means that the GPU is too hot and slows down.
	Hot bool      `json:"hot,omitempty"`
	At  time.Time `json:"at"`
}

// FaultsFile is the name of the file with the faults of simulated GPUs. The file is in the folder of the agent's driver.
const FaultsFile = "faults.json"

// ReadFaults reads the faults of simulated GPUs, by index. A missing file means that no GPU has a fault.
func ReadFaults(file string) (map[int32]Fault, error) { return readByIndex[Fault](file) }

// readByIndex reads a file with a value for each GPU, by index. readByIndex treats a missing file like an empty file.
func readByIndex[T any](file string) (map[int32]T, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[int32]T{}, nil
	}
	if err != nil {
		return nil, err
	}
	var of map[string]T
	if err := json.Unmarshal(data, &of); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := map[int32]T{}
	for key, v := range of {
		index, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not the index of a GPU", file, key)
		}
		out[int32(index)] = v
	}
	return out, nil
}

// WriteFaults writes the faults atomically. A concurrent reader gets either all new faults or all previous faults.
func WriteFaults(file string, faults map[int32]Fault) error {
	data, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	return replace.File(file, append(data, '\n'), 0o600)
}
