package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/bundle"
)

// Room that a node needs beside what paictl brings: logs, the kubelet's own, the writable
// layers of the first pods; and etcd's database with its snapshots. Bytes.
const (
	nodeReserve = 2 << 30
	etcdReserve = 1 << 30
	etcReserve  = 64 << 20
	// unpacked is how much an image takes, in multiples of its archive, whose layers are
	// compressed to about a third: the archive while it is imported, the layers in
	// containerd's store, and their files. Measured: 833 MB for archives of 163.
	unpacked = 5
)

// space is a demand for room in a folder.
type space struct {
	path  string
	bytes int64
}

// demands are a node's needs for room. What is already there is not counted again.
func (s *subject) demands() []space {
	out := []space{{"/etc", etcReserve}}
	if !s.joined {
		out = append(out, space{"/var/lib/kubelet", nodeReserve})
		if s.node.ControlPlane {
			out = append(out, space{etcdPath(s.spec), etcdReserve})
		}
	}
	if s.spec.Bundle == nil {
		return out
	}
	have := s.installed()
	sum := func(kind string, there func(bundle.Artifact) bool) (total int64) {
		for _, a := range s.spec.artifacts(s.node, kind) {
			if !there(a) {
				total += a.Size
			}
		}
		return total
	}
	byHash := func(a bundle.Artifact) bool { return have[a.SHA256] }
	imported := s.seen.sections[phaseImages]
	images := sum(bundle.KindImage, func(a bundle.Artifact) bool {
		return (&images{spec: s.spec}).present(imported, a)
	})
	var driver int64
	if p := (&nvidiaDriver{spec: s.spec}); p.applies(s.node) {
		// What can't be read is told where it is used.
		c, _ := p.brings(p.look(s.facts, s.seen.sections[phaseDriver]))
		for _, a := range c.Artifacts() {
			driver += a.Size
		}
	}
	// Uploads wait in paictl's folder; a program is there twice until it is moved.
	return append(out,
		space{binDir, sum(bundle.KindBinary, byHash)},
		space{cniBinDir, sum(bundle.KindCNIPlugin, byHash)},
		space{stateDir, sum(bundle.KindBinary, byHash) + driver},
		space{"/var/lib/containerd", unpacked * images},
	)
}

// installed returns the hashes of the bundle's files that detection found on the host.
func (s *subject) installed() map[string]bool {
	out := map[string]bool{}
	for _, a := range s.seen.sections {
		for _, row := range a.All("art") {
			if len(row) == 3 {
				out[row[2]] = true
			}
		}
	}
	return out
}

// volume is a file system, and what is asked of it.
type volume struct {
	point      string
	need, free int64 // bytes
	paths      []string
}

// volumes adds the demands up for each file system.
func (s *subject) volumes() []*volume {
	byKey := map[string]*volume{}
	var out []*volume
	for _, d := range s.demands() {
		row, ok := s.probe.Row("fs", d.path)
		if !ok || len(row) < 3 || d.bytes == 0 {
			continue
		}
		free, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			continue
		}
		point, key := row[0], row[0]
		if strings.HasPrefix(row[2], "/") { // one device may be mounted in many places
			key = row[2]
		}
		v := byKey[key]
		if v == nil {
			v = &volume{point: point, free: free << 10}
			byKey[key] = v
			out = append(out, v)
		}
		v.need += d.bytes
		if !slices.Contains(v.paths, d.path) {
			v.paths = append(v.paths, d.path)
		}
	}
	return out
}

// checkDisk compares what is needed with what is free.
func checkDisk(s *subject) []Finding {
	var out []Finding
	for _, v := range s.volumes() {
		if v.free >= v.need {
			continue
		}
		out = append(out, s.fail("disk", fmt.Sprintf("%s has %s free and needs %s, for %s", v.point, mib(v.free), mib(v.need), strings.Join(v.paths, ", ")),
			fmt.Sprintf("free at least %s there (du -xh --max-depth=2 %s | sort -h shows what is large), or give it a larger disk", mib(v.need-v.free), v.point)))
	}
	return out
}

// checkMounts: paictl writes into these folders, and programs run from some of them.
func checkMounts(s *subject) []Finding {
	var out []Finding
	told := map[string]bool{}
	for _, row := range s.probe.All("mount") {
		if len(row) < 3 || told[row[1]+row[2]] {
			continue
		}
		path, point, option := row[0], row[1], row[2]
		why, instead := "read-only", "rw"
		if option == "noexec" {
			if path != binDir && path != cniBinDir && path != "/var/lib/containerd" && path != "/var/lib/kubelet" {
				continue
			}
			why, instead = "mounted noexec", "exec"
		}
		told[point+option] = true
		out = append(out, s.fail("mount", fmt.Sprintf("%s is %s, and %s lies there", point, why, path),
			fmt.Sprintf("mount -o remount,%s %s, and the same in /etc/fstab", instead, point)))
	}
	return out
}
