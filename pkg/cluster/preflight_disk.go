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
	// unpacked is how much an image takes, in multiples of its archive: the archive while
	// it is imported, its layers in containerd's store, and their files.
	unpacked = 3
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
	// Uploads wait in paictl's folder; a program is there twice until it is moved.
	return append(out,
		space{binDir, sum(bundle.KindBinary, byHash)},
		space{cniBinDir, sum(bundle.KindCNIPlugin, byHash)},
		space{stateDir, sum(bundle.KindBinary, byHash)},
		space{"/var/lib/containerd", unpacked * images},
	)
}

// installed returns the hashes of the bundle's files that detection found on the host.
func (s *subject) installed() map[string]bool {
	out := map[string]bool{}
	for _, a := range s.seen.sections {
		for _, row := range a.all("art") {
			if len(row) == 3 {
				out[row[2]] = true
			}
		}
	}
	return out
}

// checkDisk adds the demands up for each file system and compares them with its free room.
func checkDisk(s *subject) []Finding {
	type volume struct {
		need, free int64
		paths      []string
	}
	volumes := map[string]*volume{}
	var order []string
	for _, d := range s.demands() {
		row, ok := s.probe.row("fs", d.path)
		if !ok || len(row) < 3 || d.bytes == 0 {
			continue
		}
		free, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			continue
		}
		v := volumes[row[0]]
		if v == nil {
			v = &volume{free: free << 10}
			volumes[row[0]] = v
			order = append(order, row[0])
		}
		v.need += d.bytes
		if !slices.Contains(v.paths, d.path) {
			v.paths = append(v.paths, d.path)
		}
	}
	var out []Finding
	for _, point := range order {
		v := volumes[point]
		if v.free >= v.need {
			continue
		}
		out = append(out, s.fail("disk", fmt.Sprintf("%s has %s free and needs %s, for %s", point, mib(v.free), mib(v.need), strings.Join(v.paths, ", ")),
			fmt.Sprintf("free at least %s there (du -xh --max-depth=2 %s | sort -h shows what is large), or give it a larger disk", mib(v.need-v.free), point)))
	}
	return out
}

// checkMounts: paictl writes into these folders, and programs run from them.
func checkMounts(s *subject) []Finding {
	var out []Finding
	told := map[string]bool{}
	for _, row := range s.probe.all("mount") {
		if len(row) < 3 {
			continue
		}
		path, point, options := row[0], row[1], strings.Split(row[2], ",")
		runs := path == binDir || path == cniBinDir || path == "/var/lib/containerd" || path == "/var/lib/kubelet"
		for option, why := range map[string]string{"ro": "read-only", "noexec": "mounted noexec"} {
			if !slices.Contains(options, option) || option == "noexec" && !runs || told[point+option] {
				continue
			}
			told[point+option] = true
			fix := "rw"
			if option == "noexec" {
				fix = "exec"
			}
			out = append(out, s.fail("mount", fmt.Sprintf("%s is %s, and %s lies there", point, why, path),
				fmt.Sprintf("mount -o remount,%s %s, and the same in /etc/fstab", fix, point)))
		}
	}
	return out
}
