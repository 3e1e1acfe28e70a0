// Package notice reads and writes the file that reports GPU health to a container. Only the machine's agent writes the file. In: the GPUs of a claim.
// Out: a file in the container, and the content of the file.
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
	// Folder is the path of the folder with the notice in a container with a claim. The file in Folder changes when the health of the GPUs changes.
	Folder = "/run/paictl/gpus"
	// File is the name of the file in Folder.
	File = "gpus.json"
)

// GPUs is the content of a notice.
type GPUs struct {
	GPUs []GPU `json:"gpus"`
}

// GPU describes the health of a GPU in the container.
type GPU struct {
	Index int32  `json:"index"`
	UUID  string `json:"uuid"`
	// Reason is the fault of a sick GPU, such as "XID 79: it has fallen off the bus". Reason is "" if the GPU isn't sick. Since is the time when Reason
	// last changed.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// XIDs are NVIDIA's numbers of the last errors since the container received the GPU, in order.
	XIDs []int `json:"xids,omitempty"`
	// Uncorrected means that uncorrectable errors occurred in the GPU's memory.
	Uncorrected bool `json:"uncorrected,omitempty"`
}

// Read reads the notice in a folder. ok is false if the file doesn't exist, because the container has no claim or the machine has no agent.
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

// Write writes a notice to a folder atomically. A concurrent reader gets either the new notice or the previous notice.
func Write(folder string, told GPUs) error {
	data, err := json.Marshal(told)
	if err != nil {
		return err
	}
	return replace.File(filepath.Join(folder, File), append(data, '\n'), 0o644) // programs in containers run as any user
}
