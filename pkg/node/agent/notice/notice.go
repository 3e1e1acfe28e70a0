// Package notice reads and writes the file in which a machine's agent reports GPU health to a container. Only the agent writes it.
// In: the GPUs of a claim. Out: a file in the container, and its content.
package notice

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/replace"
)

const (
	// Folder is the path of the notice in containers with a claim. Its content changes when the GPUs' health does.
	Folder = "/run/paictl/gpus"
	// File is its name there.
	File = "gpus.json"
)

// GPUs are the GPUs of a container.
type GPUs struct {
	GPUs []GPU `json:"gpus"`
}

// GPU is a GPU of a container.
type GPU struct {
	Index int32  `json:"index"`
	UUID  string `json:"uuid"`
	// Reason is the fault if it is sick, such as "XID 79: it has fallen off the bus", otherwise "". Since is the beginning of that
	// state.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// XIDs are NVIDIA's numbers of the last errors that the driver reported since the container got the GPU, in order.
	XIDs []int `json:"xids,omitempty"`
	// Uncorrected means that its memory had uncorrectable errors.
	Uncorrected bool `json:"uncorrected,omitempty"`
}

// Read reads the notice in a folder. ok is false if the file doesn't exist: the container has no claim, or its machine has no agent.
func Read(folder string) (out GPUs, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(folder, File))
	if errors.Is(err, fs.ErrNotExist) {
		return GPUs{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err == nil, err
}

// Write writes a notice to a folder atomically: a reader sees either all of it or the previous one.
func Write(folder string, told GPUs) error {
	data, err := json.Marshal(told)
	if err != nil {
		return err
	}
	return replace.File(filepath.Join(folder, File), append(data, '\n'), 0o644) // programs in containers run as any user
}
