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

// File describes an archive that is in a folder, on a machine or in a bucket. Size is in bytes.
type File struct {
	// Path is the archive's location in the format that commands accept: a path on this machine, ssh://..., s3://....
	Path    string `json:"path"`
	Cluster string `json:"cluster"`
	// ID distinguishes clusters of the same name. It is empty for older archives.
	ID   string    `json:"id,omitempty"`
	Time time.Time `json:"time"`
	// WithoutHistory means that the history of jobs is missing although the cluster has a history. The names of archives that an earlier paictl wrote
	// don't record this.
	WithoutHistory bool  `json:"withoutHistory,omitempty"`
	Size           int64 `json:"size"`
}

// Ending is the suffix of archives' names.
const Ending = ".paictl-backup"

const stamp = "20060102T150405Z"

var named = regexp.MustCompile(`^(.+?)(?:\.([0-9a-f]{12}))?-([0-9]{8}T[0-9]{6}Z)(-without-history)?\.paictl-backup$`)

// ID returns an identifier that distinguishes a cluster from others with the same name. It is a hash of two values: the UID of the namespace
// kube-system, which is unique to a cluster, and the record of a restore, because a restored cluster keeps the UID of the saved cluster. It is empty
// if the UID isn't known.
func ID(uid, restored string) string {
	if uid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(uid + "\n" + restored))
	return hex.EncodeToString(sum[:6])
}

// Of returns the part of an archive's name that identifies its cluster: CLUSTER.ID. A cluster's name contains no dot.
func Of(cluster, id string) string {
	if id == "" {
		return cluster
	}
	return cluster + "." + id
}

// Name returns the name of a cluster's archive: CLUSTER.ID-20261127T020000Z.paictl-backup. of is a result of Of.
func Name(of string, at time.Time) string {
	return of + "-" + at.UTC().Format(stamp) + Ending
}

// NameWithoutHistory returns the name of an archive without the history of jobs. The name records this because lists of archives don't open them.
func NameWithoutHistory(of string, at time.Time) string {
	return of + "-" + at.UTC().Format(stamp) + "-without-history" + Ending
}

// Named parses the name of an archive. It returns false if the name has another form.
func Named(name string) (File, bool) {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return File{}, false
	}
	at, err := time.Parse(stamp, m[3])
	return File{Cluster: m[1], ID: m[2], Time: at, WithoutHistory: m[4] != ""}, err == nil
}

// IsOf reports whether an archive belongs to a cluster. of is a result of Of: without an ID, it matches all clusters of that name; with an ID, only
// that cluster. "" matches every archive.
func (f File) IsOf(of string) bool {
	return of == "" || of == f.Cluster || of == Of(f.Cluster, f.ID)
}

// Sort sorts archives by time, the latest first.
func Sort(files []File) {
	slices.SortStableFunc(files, func(a, b File) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Path, b.Path))
	})
}

// Keep defines which archives of a cluster are kept: the last archives, and the last archive of each of the last days and weeks. Days and weeks
// without an archive don't count.
type Keep struct {
	Last, Daily, Weekly int
}

// Expired returns the files to delete. files must belong to one cluster, in the order of Sort. Expired always keeps the latest file and the latest
// file with the history of jobs, which newer files without the history don't replace.
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
		// Evaluate both calls, because one archive may be the last of its day and of its week.
		day := first(days, f.Time.Format(time.DateOnly), k.Daily)
		ofWeek := first(weeks, fmt.Sprintf("%d-%d", year, week), k.Weekly)
		if i == 0 || i == withHistory || i < k.Last || day || ofWeek {
			continue
		}
		out = append(out, f)
	}
	return out
}

// ExpiredOfAll returns the files to delete if files may belong to several clusters. files must be in the order of Sort.
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
