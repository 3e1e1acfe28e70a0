package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/paths"
)

// Room in bytes that a node needs beside the copied files: logs, the kubelet's files, the writable
// layers of the first pods; and etcd's database with its snapshots.
const (
	nodeReserve = 2 << 30
	etcdReserve = 1 << 30
	etcReserve  = 64 << 20
)

// Room is the room that is needed in a folder.
type Room struct {
	Path   string
	Bytes  int64
	Inodes int64 // of files and folders
}

// demands returns a node's needs for room. It doesn't count files that are already present.
func (s *Host) demands() []Room {
	out := []Room{{"/etc", etcReserve, 100}}
	if !s.Joined {
		out = append(out, Room{"/var/lib/kubelet", nodeReserve, 2000})
		if s.ControlPlane {
			out = append(out, Room{etcdPath(s.Cluster), etcdReserve, 100})
		}
	}
	return append(out, s.Brings...)
}

// volume is a file system, and the room that it must have.
type volume struct {
	point      string
	need, free int64 // bytes
	needInodes int64
	freeInodes int64 // -1 if the file system has no limit
	paths      []string
}

// volumes adds the demands up for each file system.
func (s *Host) volumes() []*volume {
	byKey := map[string]*volume{}
	var out []*volume
	for _, d := range s.demands() {
		row, ok := s.Probe.Row("fs", d.Path)
		if !ok || len(row) < 3 || d.Bytes == 0 {
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
			v = &volume{point: point, free: free << 10, freeInodes: -1}
			if len(row) > 3 {
				if n, err := strconv.ParseInt(row[3], 10, 64); err == nil {
					v.freeInodes = n
				}
			}
			byKey[key] = v
			out = append(out, v)
		}
		v.need += d.Bytes
		v.needInodes += d.Inodes
		if !slices.Contains(v.paths, d.Path) {
			v.paths = append(v.paths, d.Path)
		}
	}
	return out
}

// checkDisk compares the needed room with the free room.
func checkDisk(s *Host) []Finding {
	var out []Finding
	for _, v := range s.volumes() {
		if v.freeInodes >= 0 && v.freeInodes < v.needInodes {
			out = append(out, s.fail("inodes", fmt.Sprintf("%s has %d inodes free, but needs %d, for %s", v.point, v.freeInodes, v.needInodes, strings.Join(v.paths, ", ")),
				fmt.Sprintf("delete files there (du -x --inodes --max-depth=3 %s | sort -n shows the folders with most), or give it a file system with more inodes", v.point)))
		}
		if v.free >= v.need {
			continue
		}
		out = append(out, s.fail("disk", fmt.Sprintf("%s has %s free, but needs %s, for %s", v.point, mib(v.free), mib(v.need), strings.Join(v.paths, ", ")),
			fmt.Sprintf("free at least %s there (du -xh --max-depth=2 %s | sort -h shows what is large), or give it a larger disk", mib(v.need-v.free), v.point)))
	}
	return out
}

// checkLinks fails for a dangling link, such as one to a disk that isn't mounted: no folder can be made in its place.
func checkLinks(s *Host) []Finding {
	var out []Finding
	for _, row := range s.Probe.All("dangling") {
		if len(row) == 2 {
			out = append(out, s.fail("link", fmt.Sprintf("%s is a link to %s, which doesn't exist", row[0], row[1]),
				fmt.Sprintf("mount the disk that has %[1]s, or create the folder: mkdir -p %[1]s", row[1])))
		}
	}
	return out
}

// checkOverlay: containers start from overlays of their image's layers, and some file systems don't support them:
// another overlay, NFS, XFS without ftype.
func checkOverlay(s *Host) []Finding {
	row, ok := s.Probe.Row("overlay")
	if !ok || len(row) < 3 || s.Cluster.snapshotter() != "overlayfs" || s.Probe.Value("module", "overlay") == "absent" {
		return nil
	}
	store := s.Cluster.Store()
	return []Finding{s.fail("overlay", fmt.Sprintf("no container can start from %s: an overlay mount fails on its file system, %s (%s)", store, row[1], row[2]),
		fmt.Sprintf("mount a disk with ext4, or with XFS made with ftype=1, at %s", store))}
}

// checkMounts: paictl writes into these folders, and programs run from some of them.
func checkMounts(s *Host) []Finding {
	var out []Finding
	told := map[string]bool{}
	for _, row := range s.Probe.All("mount") {
		if len(row) < 3 || told[row[1]+row[2]] {
			continue
		}
		path, point, option := row[0], row[1], row[2]
		why, instead := "read-only", "rw"
		if option == "noexec" {
			if path != paths.Bin && path != paths.CNIBin && path != s.Cluster.Store() && path != "/var/lib/kubelet" {
				continue
			}
			why, instead = "mounted noexec", "exec"
		}
		told[point+option] = true
		out = append(out, s.fail("mount", fmt.Sprintf("%s is %s, and contains %s", point, why, path),
			fmt.Sprintf("mount -o remount,%s %s, and the same in /etc/fstab", instead, point)))
	}
	return out
}
