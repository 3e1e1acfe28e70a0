package checks

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Minimum percentages of free space and free inodes of a file system. By default, the kubelet evicts pods below 10 % of the space or 5 % of the
// inodes, and removes images below 15 % of the space. The alerts about file systems and volumes have the same limits.
const (
	RoomWarning = 10
	RoomProblem = 5
)

// FilesystemsScript defines the shell function filesystems. Filesystems parses its output.
//
//go:embed filesystems.sh
var FilesystemsScript string

// Filesystem is a file system of a machine.
type Filesystem struct {
	Point              string
	Size, Free         int64 // KiB
	Inodes, FreeInodes int64 // 0 if it has no limit for them
	// Paths lists the checked folders on this file system.
	Paths []string
}

// Filesystems parses the rows "path mountpoint KiB free-KiB device inodes free-inodes". It returns each file system once, even if a device is
// mounted in several places.
func Filesystems(rows [][]string) []*Filesystem {
	var out []*Filesystem
	by := map[string]*Filesystem{}
	for _, row := range rows {
		if len(row) < 7 || !isNumber(row[2]) || !isNumber(row[3]) { // df prints "-" for values that a file system doesn't report
			continue
		}
		key := row[4]
		if !strings.HasPrefix(key, "/") { // tmpfs, overlay …: several file systems have the same name
			key = row[1]
		}
		f := by[key]
		if f == nil {
			f = &Filesystem{Point: row[1]}
			for i, to := range map[int]*int64{2: &f.Size, 3: &f.Free, 5: &f.Inodes, 6: &f.FreeInodes} {
				*to, _ = strconv.ParseInt(row[i], 10, 64)
			}
			by[key] = f
			out = append(out, f)
		}
		if !slices.Contains(f.Paths, row[0]) {
			f.Paths = append(f.Paths, row[0])
		}
	}
	return out
}

func isNumber(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// CheckSpace returns findings if the file system is nearly full.
func (f *Filesystem) CheckSpace() (out []Finding) {
	if severity := room(f.Free, f.Size); severity != "" {
		out = append(out, Finding{Check: "disk", Severity: severity, Remedy: f.freeing("space", "; crictl rmi --prune removes unused images"),
			Message: fmt.Sprintf("%s is %d %% full: %s of %s left, for %s", f.Point, 100-f.Free*100/f.Size, Size(f.Free), Size(f.Size), strings.Join(f.Paths, ", "))})
	}
	if severity := room(f.FreeInodes, f.Inodes); severity != "" {
		out = append(out, Finding{Check: "inodes", Severity: severity, Remedy: f.moreInodes(),
			Message: fmt.Sprintf("%s has %d of %d inodes left, for %s", f.Point, f.FreeInodes, f.Inodes, strings.Join(f.Paths, ", "))})
	}
	return out
}

// Holds returns findings if the file system doesn't have the free space and the free inodes that paths need.
func (f *Filesystem) Holds(kib, inodes int64, paths []string) (out []Finding) {
	if f.Inodes > 0 && f.FreeInodes < inodes {
		out = append(out, problem("inodes", f.moreInodes(), "%s has %d inodes free, but needs %d, for %s", f.Point, f.FreeInodes, inodes, strings.Join(paths, ", ")))
	}
	if f.Free < kib {
		out = append(out, problem("disk", f.freeing("at least "+Size(kib-f.Free), ""), "%s has %s free, but needs %s, for %s", f.Point, Size(f.Free), Size(kib), strings.Join(paths, ", ")))
	}
	return out
}

func (f *Filesystem) freeing(much, how string) string {
	return fmt.Sprintf("free %s there (du -xh --max-depth=2 %s | sort -h shows what is large%s), or give it a larger disk", much, f.Point, how)
}

func (f *Filesystem) moreInodes() string {
	return fmt.Sprintf("delete small files there (du -x --inodes --max-depth=3 %s | sort -n shows the folders with most), or give it a file system with more inodes", f.Point)
}

// room returns a severity if too little of a total is free. Otherwise, or if the total is unknown, it returns "".
func room(free, all int64) string {
	switch {
	case all <= 0:
		return ""
	case free*100 < all*RoomProblem:
		return Error
	case free*100 < all*RoomWarning:
		return Warning
	}
	return ""
}

// Size formats a number of KiB with a suitable unit.
func Size(kib int64) string {
	switch {
	case kib < 10<<10:
		return fmt.Sprintf("%d KiB", kib)
	case kib < 10<<20:
		return fmt.Sprintf("%d MiB", kib>>10)
	}
	return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
}
