package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

const (
	// pluginFolder is the folder with the agent's files, relative to the host's /var.
	pluginFolder = "lib/kubelet/plugins/" + claim.Driver
	// simulatedFiles is a pattern, relative to the host's /var, for files with the number of simulated GPUs of a host. The kubelet keeps the files of
	// pods in that folder. The agent's chart determines the names.
	simulatedFiles = "lib/kubelet/pods/*/volumes/kubernetes.io~configmap/machines/machines.json"
)

// FaultGPU changes the fault of a host's simulated GPU. It returns the new fault, or the zero value if the GPU works. The agent detects the change
// immediately, because the host's /var is a folder of this machine. If the host is off, the agent detects the change at the next start.
func (s *Sandbox) FaultGPU(node string, index int32, now time.Time, change func(*gpu.Fault)) (gpu.Fault, error) {
	if s.APIOnly() {
		return gpu.Fault{}, hint.Errorf("make a sandbox of hosts, as root on Linux: paictl sandbox up --hosts 3",
			"the nodes of the sandbox in %s are simulated: no agent runs there to report faults", s.dir)
	}
	h, err := s.Host(node)
	if err != nil {
		return gpu.Fault{}, err
	}
	if h.Kind == Light {
		return gpu.Fault{}, hint.Errorf("make a sandbox of full hosts: paictl sandbox up without --light", "%s is a light host: no agent runs there to report faults", node)
	}
	// The lock also prevents a replacement of the host's disk during the change.
	unlock, err := lock(s.dir)
	if err != nil {
		return gpu.Fault{}, err
	}
	defer unlock()
	varFolder, err := s.varWithAgent(node)
	if err != nil {
		return gpu.Fault{}, err
	}
	defer func() { _ = varFolder.Close() }()
	if err := checkIndex(node, index, simulatedGPUs(varFolder, node)); err != nil {
		return gpu.Fault{}, err
	}
	return changeFault(filepath.Join(varFolder.Name(), pluginFolder, gpu.FaultsFile), index, now, change)
}

// varWithAgent opens the /var of a host on which the agent has run. os.Root prevents symbolic links from leading to files of this machine.
func (s *Sandbox) varWithAgent(node string) (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(s.hostDir(node), "var"))
	if err == nil {
		if _, err = root.Stat(pluginFolder); err == nil {
			return root, nil
		}
		_ = root.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Errorf("start it: paictl service start -n agent; it runs on workers of a cluster whose quick-start file says gpu: simulate",
			"no agent has run on %s, so no GPU there can have faults", node)
	}
	return nil, fmt.Errorf("look for the agent's folder on %s: %w", node, err)
}

// simulatedGPUs returns the number of GPUs that a host simulates, or 0 if the number is unknown.
func simulatedGPUs(varFolder *os.Root, node string) int {
	files, _ := fs.Glob(varFolder.FS(), simulatedFiles) // the pattern is valid, so there is no error
	most := 0
	for _, f := range files {
		// A file may belong to an earlier pod of the agent. Use the largest number, because only a larger index is certainly wrong.
		if s, err := gpu.ReadMachine(filepath.Join(varFolder.Name(), f), node); err == nil && s.Simulated {
			most = max(most, s.Count)
		}
	}
	return most
}

func checkIndex(node string, index int32, count int) error {
	switch {
	case index < 0:
		return invalid("GPUs are numbered from 0", "%s has no GPU %d", node, index)
	case count == 1 && index > 0:
		return invalid("its only GPU is 0", "%s has no GPU %d", node, index)
	case count > 0 && int(index) >= count:
		return invalid(fmt.Sprintf("its GPUs are 0 to %d", count-1), "%s has no GPU %d", node, index)
	}
	return nil
}

func changeFault(file string, index int32, now time.Time, change func(*gpu.Fault)) (gpu.Fault, error) {
	faults, err := gpu.ReadFaults(file)
	if err != nil {
		return gpu.Fault{}, hint.Errorf("only paictl may write this file; to start without faults: rm "+file, "read the faults: %w", err)
	}
	f := faults[index]
	change(&f)
	f.At = time.Time{}
	if f == (gpu.Fault{}) {
		delete(faults, index)
	} else {
		f.At = now
		faults[index] = f
	}
	if err := gpu.WriteFaults(file, faults); err != nil {
		return gpu.Fault{}, fmt.Errorf("write the faults: %w", err)
	}
	return f, nil
}
