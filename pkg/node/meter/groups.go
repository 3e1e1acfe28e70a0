package meter

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// podGroup matches the kubelet's name of a pod's control group. The name contains the pod's UID. systemd's names contain underscores instead of
	// dashes in the UID.
	podGroup = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})(\.slice)?$`)
	// containerGroup matches the container runtimes' names of containers' control groups. A name contains the container's ID, as cri-containerd-ID.scope
	// or only ID.
	containerGroup = regexp.MustCompile(`^([a-z-]+-)?([0-9a-f]{64})(\.scope)?$`)
)

// monitorGroup is the name prefix of control groups with CRI-O's own processes. Each container has such a control group.
const monitorGroup = "crio-conmon-"

func (m *Meter) readGroups(pods map[string]bool) (reading, error) {
	files, root := version2, m.folder
	if _, err := os.Stat(filepath.Join(m.folder, "cgroup.controllers")); err != nil {
		files, root = version1, filepath.Join(m.folder, "memory") // a tree for each controller, of the same groups
	}
	out := reading{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return fmt.Errorf("read the machine's control groups: %w", err)
		case err != nil || !e.IsDir():
			return nil //nolint:nilerr // it was removed in between
		}
		found := podGroup.FindStringSubmatch(e.Name())
		if found == nil {
			return nil
		}
		if uid := strings.ReplaceAll(found[1], "_", "-"); pods[uid] {
			m.readPod(out, files, uid, path)
		}
		return fs.SkipDir
	})
	return out, err
}

// readPod reads the counters of a pod. readPod leaves out containers that exit during the read.
func (m *Meter) readPod(out reading, files filesOf, uid, group string) {
	entries, _ := os.ReadDir(group) // a removed pod has no containers
	for _, e := range entries {
		found := containerGroup.FindStringSubmatch(e.Name())
		if found == nil || !e.IsDir() || found[1] == monitorGroup {
			continue
		}
		c := counters{pod: uid, at: m.now()}
		var err error
		if c.cpu, c.memory, err = files(m.folder, filepath.Join(group, e.Name())); err == nil {
			out[found[2]] = c
		}
	}
}

// filesOf reads the counters of a control group: the CPU time, and the memory. The memory doesn't include file caches that weren't used recently,
// because the kernel can drop such caches immediately. The kubelet calls this memory the working set.
type filesOf func(root, group string) (cpu time.Duration, memory int64, err error)

func version2(_, group string) (time.Duration, int64, error) {
	micros, cpuErr := value(filepath.Join(group, "cpu.stat"), "usage_usec")
	used, usedErr := value(filepath.Join(group, "memory.current"), "")
	idle, idleErr := value(filepath.Join(group, "memory.stat"), "inactive_file")
	return time.Duration(micros) * time.Microsecond, max(used-idle, 0), errors.Join(cpuErr, usedErr, idleErr)
}

func version1(root, group string) (time.Duration, int64, error) {
	below, err := filepath.Rel(filepath.Join(root, "memory"), group)
	if err != nil {
		return 0, 0, err
	}
	nanos, cpuErr := value(filepath.Join(root, "cpuacct", below, "cpuacct.usage"), "")
	used, usedErr := value(filepath.Join(group, "memory.usage_in_bytes"), "")
	idle, idleErr := value(filepath.Join(group, "memory.stat"), "total_inactive_file")
	return time.Duration(nanos), max(used-idle, 0), errors.Join(cpuErr, usedErr, idleErr)
}

// value reads a number from a file. If key is empty, the number is the whole content. Otherwise the number follows the key.
func value(name, key string) (int64, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	if key == "" {
		return strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, key+" "); ok {
			return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", name, key)
}
