package agent

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// exitWait is how long killed processes may take to exit before the kubelet receives an error and retries later.
const exitWait = 3 * time.Second

// processes finds the processes of pods in the machine's control groups. The kubelet's loop that releases claims ignores force-deleted pods, although
// their containers still run until the end of their grace period.
type processes struct {
	folder string // the machine's control groups, such as /sys/fs/cgroup
}

// ended waits until all processes of the pods have exited. After a timeout, the error contains a pod with remaining processes.
func (p *processes) ended(ctx context.Context, pods []types.UID) error {
	limit := time.Now().Add(exitWait)
	for {
		pod, running, err := p.first(pods)
		if err != nil || !running {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("processes of the pod %s still run", pod)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// first returns the first pod with a process.
func (p *processes) first(pods []types.UID) (pod types.UID, running bool, err error) {
	for _, uid := range pods {
		if running, err = p.runs(uid); err != nil || running {
			return uid, running, err
		}
	}
	return "", false, nil
}

// runs reports whether a pod has processes. A pod without a control group has no processes.
func (p *processes) runs(pod types.UID) (running bool, err error) {
	root := p.folder
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root = filepath.Join(root, "pids") // version 1: a tree for each controller
	}
	// systemd's control group names contain underscores instead of dashes.
	dashed, lined := "pod"+string(pod), "pod"+strings.ReplaceAll(string(pod), "-", "_")
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil && path == root:
			return fmt.Errorf("it is unknown whether the pod %s has finished: %w", pod, err)
		case err != nil || !e.IsDir():
			return nil //nolint:nilerr // it was removed since it was listed
		case strings.HasSuffix(name, dashed) || strings.HasSuffix(strings.TrimSuffix(name, ".slice"), lined):
			n, err := count(path)
			if err != nil {
				return fmt.Errorf("it is unknown whether the pod %s has finished: %w", pod, err)
			}
			if running = running || n > 0; running {
				return fs.SkipAll
			}
			return fs.SkipDir
		}
		return nil
	})
	return running, err
}

// count returns the number of processes and threads in a control group and its subgroups. count returns 0 if the control group was removed.
func count(group string) (int, error) {
	data, err := os.ReadFile(filepath.Join(group, "pids.current"))
	if os.IsNotExist(err) {
		if _, gone := os.Stat(group); os.IsNotExist(gone) {
			return 0, nil
		}
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}
