package backup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// File describes an archive in a folder, on a machine or in a bucket. Size is in bytes.
type File struct {
	// Path is the archive's location in the format that commands accept: a local path, ssh://..., or s3://....
	Path    string `json:"path"`
	Cluster string `json:"cluster"`
	// ID distinguishes clusters that have the same name. It is empty for older archives.
	ID   string    `json:"id,omitempty"`
	Time time.Time `json:"time"`
	// WithoutHistory means that the job history is missing although the cluster has a job history. It is always false for archives of older paictl
	// releases, because their names don't record this.
	WithoutHistory bool  `json:"withoutHistory,omitempty"`
	Size           int64 `json:"size"`
}

// Ending is the suffix of an archive's name.
const Ending = ".paictl-backup"

const stamp = "20060102T150405Z"

var named = regexp.MustCompile(`^(.+?)(?:\.([0-9a-f]{12}))?-([0-9]{8}T[0-9]{6}Z)(-without-history)?\.paictl-backup$`)

// ID returns an identifier that distinguishes clusters with the same name, or "" if uid is empty. It is a hash of two values. The UID of the
// namespace kube-system is unique to a cluster, but a restored cluster has the same UID as the saved cluster. restored is the record of a restore.
func ID(uid, restored string) string {
	if uid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(uid + "\n" + restored))
	return hex.EncodeToString(sum[:6])
}

// Of returns CLUSTER.ID, the part of an archive's name that identifies the cluster. A cluster's name contains no dot.
func Of(cluster, id string) string {
	if id == "" {
		return cluster
	}
	return cluster + "." + id
}

// Name returns the name of an archive: CLUSTER.ID-20261127T020000Z.paictl-backup. The argument is a result of Of.
func Name(of string, at time.Time) string {
	return of + "-" + at.UTC().Format(stamp) + Ending
}

// NameWithoutHistory returns the name of an archive without the job history. The name shows the missing history, because programs list archives
// without opening the archives.
func NameWithoutHistory(of string, at time.Time) string {
	return of + "-" + at.UTC().Format(stamp) + "-without-history" + Ending
}

// Named parses the name of an archive. It returns false for any other name.
func Named(name string) (File, bool) {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return File{}, false
	}
	at, err := time.Parse(stamp, m[3])
	return File{Cluster: m[1], ID: m[2], Time: at, WithoutHistory: m[4] != ""}, err == nil
}

// IsOf reports whether an archive belongs to a cluster. The argument is a result of Of. Without an ID, the argument matches all clusters with that
// name. If it is empty, it matches every archive.
func (f File) IsOf(of string) bool {
	return of == "" || of == f.Cluster || of == Of(f.Cluster, f.ID)
}

// Sort sorts archives by time, the latest first.
func Sort(files []File) {
	slices.SortStableFunc(files, func(a, b File) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Path, b.Path))
	})
}

// Keep defines how many archives of a cluster are kept: the latest archives, and the latest archive of each of several days and weeks. Days and weeks
// without an archive don't count.
type Keep struct {
	Last, Daily, Weekly int
}

// Expired returns the files to delete. files must belong to one cluster, in the order of Sort. Expired always keeps the latest file, and the latest
// file with the job history.
func (k Keep) Expired(files []File) []File {
	withHistory := slices.IndexFunc(files, func(f File) bool { return !f.WithoutHistory })
	days, weeks := map[string]bool{}, map[string]bool{}
	var out []File
	for i, f := range files {
		year, week := f.Time.ISOWeek()
		first := func(seen map[string]bool, key string, most int) bool {
			if seen[key] || len(seen) >= most {
				return false
			}
			seen[key] = true
			return true
		}
		// Don't short-circuit these calls, because an archive may be both the latest of its day and the latest of its week.
		day := first(days, f.Time.Format(time.DateOnly), k.Daily)
		ofWeek := first(weeks, fmt.Sprintf("%d-%d", year, week), k.Weekly)
		if i == 0 || i == withHistory || i < k.Last || day || ofWeek {
			continue
		}
		out = append(out, f)
	}
	return out
}

// ExpiredOfAll returns the files to delete among files of several clusters. files must be in the order of Sort.
func (k Keep) ExpiredOfAll(files []File) []File {
	clusters := map[string][]File{}
	for _, f := range files {
		of := Of(f.Cluster, f.ID)
		clusters[of] = append(clusters[of], f)
	}
	gone := map[string]bool{}
	for _, of := range clusters {
		for _, f := range k.Expired(of) {
			gone[f.Path] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !gone[f.Path] })
}
