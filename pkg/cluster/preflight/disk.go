package preflight

import (
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/diagnose/checks"
)

// The disk space in bytes that a node needs in addition to the copied files. nodeReserve is for logs, the kubelet's files and the writable layers of
// the first pods. etcdReserve is for etcd's database and its snapshots.
const (
	nodeReserve = 2 << 30
	etcdReserve = 1 << 30
	etcReserve  = 64 << 20
)

// Space is the disk space that a folder needs.
type Space struct {
	Path   string
	Bytes  int64
	Inodes int64 // the number of inodes of files and folders
}

// demands returns the folders of a node with their required disk space. It doesn't count files that already exist.
func (s *Host) demands() []Space {
	out := []Space{{"/etc", etcReserve, 100}}
	if !s.Joined {
		out = append(out, Space{"/var/lib/kubelet", nodeReserve, 2000})
		if s.ControlPlane {
			out = append(out, Space{EtcdPath(s.Cluster), etcdReserve, 100})
		}
	}
	return append(out, s.Needs...)
}

// checkDisk fails if a file system has less free space than its folders need.
func checkDisk(s *Host) []Finding {
	var out []Finding
	for _, f := range checks.Filesystems(s.Probe.All("fs")) {
		var need Space
		var paths []string
		for _, d := range s.demands() {
			if d.Bytes == 0 || !slices.Contains(f.Paths, d.Path) {
				continue
			}
			need.Bytes, need.Inodes = need.Bytes+d.Bytes, need.Inodes+d.Inodes
			if !slices.Contains(paths, d.Path) {
				paths = append(paths, d.Path)
			}
		}
		out = append(out, f.Holds(need.Bytes>>10, need.Inodes, paths)...)
	}
	return out
}

// checkLinks fails if a folder is a dangling link, for example to a disk that isn't mounted. The folder can't be created in that case.
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

// checkOverlay fails if the file system with containerd's store doesn't support overlay mounts. Containers start from overlays of image layers.
// Another overlay, NFS, and XFS without ftype don't support such mounts.
func checkOverlay(s *Host) []Finding {
	row, ok := s.Probe.Row("overlay")
	if !ok || len(row) < 3 || s.Cluster.snapshotter() != "overlayfs" || s.Probe.Value("module", "overlay") == "absent" {
		return nil
	}
	store := s.Cluster.Store()
	return []Finding{s.fail("overlay", fmt.Sprintf("no container can start from %s: an overlay mount fails on its file system, %s (%s)", store, row[1], row[2]),
		fmt.Sprintf("mount a disk with ext4, or with XFS made with ftype=1, at %s", store))}
}

// checkMounts fails if paictl can't write to one of its folders because of a read-only mount. It also fails if a folder with programs is mounted
// noexec.
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
