package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Free space in percent of a file system. By default, the kubelet evicts pods below 10 %, and removes images below 15 %.
const (
	roomWarning = 10
	roomProblem = 5
)

func diskChecks() []*Check {
	return []*Check{
		{
			ID: "disk-space", Group: "machines", Title: "Disks have free space", Needs: Machines,
			Looks: "the file systems of /, the kubelet, containerd, etcd, logs, the data path and volumes; a warning below 10 % free, a problem below 5 %",
			Run:   diskSpace,
		},
		{
			ID: "inodes", Group: "machines", Title: "Disks have free inodes", Needs: Machines,
			Looks: "free inodes of the same file systems, with the same limits",
			Run:   inodes,
		},
	}
}

// filesystem is one of a machine, with the folders on it.
type filesystem struct {
	point              string
	size, free         int64 // KiB
	inodes, freeInodes int64
	paths              []string
}

// filesystems are those of the folders that matter on a machine, each once.
func (m *machine) filesystems() []*filesystem {
	var out []*filesystem
	by := map[string]*filesystem{}
	for _, row := range m.all("disk", 7) {
		key := row[6]
		if !strings.HasPrefix(key, "/") { // tmpfs, overlay …: several file systems have the same name
			key = row[1]
		}
		f := by[key]
		if f == nil {
			f = &filesystem{point: row[1]}
			for i, to := range []*int64{&f.size, &f.free, &f.inodes, &f.freeInodes} {
				*to, _ = strconv.ParseInt(row[2+i], 10, 64) // "-" if it has no inodes
			}
			by[key] = f
			out = append(out, f)
		}
		if !slices.Contains(f.paths, row[0]) {
			f.paths = append(f.paths, row[0])
		}
	}
	return out
}

func diskSpace(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		for _, f := range m.filesystems() {
			if verdict := room(f.free, f.size); verdict != OK {
				out = append(out, Finding{Where: m.Hostname, Verdict: verdict,
					Message: fmt.Sprintf("%s is %d %% full: %s of %s left, for %s", f.point, 100-f.free*100/f.size, size(f.free), size(f.size), strings.Join(f.paths, ", ")),
					Remedy:  fmt.Sprintf("free space on the machine (du -xh --max-depth=2 %s | sort -h shows what is large; crictl rmi --prune removes unused images), or give it a larger disk", f.point),
				})
			}
		}
	}
	return out, nil
}

func inodes(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		for _, f := range m.filesystems() {
			if verdict := room(f.freeInodes, f.inodes); verdict != OK {
				out = append(out, Finding{Where: m.Hostname, Verdict: verdict,
					Message: fmt.Sprintf("%s has %d of %d inodes left, for %s", f.point, f.freeInodes, f.inodes, strings.Join(f.paths, ", ")),
					Remedy:  fmt.Sprintf("remove small files that you don't need (du --inodes -x --max-depth=2 %s | sort -n shows where they are)", f.point)})
			}
		}
	}
	return out, nil
}

// room judges the free part of something; without a size, it is always ok.
func room(free, all int64) Verdict {
	switch {
	case all <= 0:
		return OK
	case free*100 < all*roomProblem:
		return Problem
	case free*100 < all*roomWarning:
		return Warning
	}
	return OK
}

// size formats KiB for people.
func size(kib int64) string {
	switch {
	case kib < 10<<10:
		return fmt.Sprintf("%d KiB", kib)
	case kib < 10<<20:
		return fmt.Sprintf("%d MiB", kib>>10)
	}
	return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
}

// quantityKiB reads a quantity of memory, 0 if it isn't one.
func quantityKiB(s string) int64 {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0
	}
	return q.Value() >> 10
}

// word is one word of a shell.
func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./,:@%+=~", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return quote(s)
}
