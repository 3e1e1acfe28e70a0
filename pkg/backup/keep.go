package backup

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// File is an archive in a folder, on a machine or in a bucket. Size is in bytes.
type File struct {
	// Path says where it is, as the commands take it: a path here, ssh://..., s3://....
	Path    string    `json:"path"`
	Cluster string    `json:"cluster"`
	Time    time.Time `json:"time"`
	Size    int64     `json:"size"`
}

// Ending is that of archives' names.
const Ending = ".paictl-backup"

const stamp = "20060102T150405Z"

var named = regexp.MustCompile(`^(.+)-([0-9]{8}T[0-9]{6}Z)\.paictl-backup$`)

// Name is what the archive of a cluster is called: CLUSTER-20261127T020000Z.paictl-backup.
func Name(cluster string, at time.Time) string {
	return cluster + "-" + at.UTC().Format(stamp) + Ending
}

// Named reads the name of an archive; a name of another form is none.
func Named(name string) (cluster string, at time.Time, ok bool) {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return "", time.Time{}, false
	}
	at, err := time.Parse(stamp, m[2])
	return m[1], at, err == nil
}

// Sort puts archives in the order of lists: the latest first.
func Sort(files []File) {
	slices.SortStableFunc(files, func(a, b File) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Path, b.Path))
	})
}

// Keep says which archives of a cluster stay: the latest ones, and the last one of each of so many days and weeks that have one.
type Keep struct {
	Last, Daily, Weekly int
}

// Expired returns those that don't stay. files are of one cluster, as Sort leaves them. The latest always stays.
func (k Keep) Expired(files []File) []File {
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
		// Both are asked: an archive may be the last one of its day and of its week.
		day := first(days, f.Time.Format(time.DateOnly), k.Daily)
		ofWeek := first(weeks, fmt.Sprintf("%d-%d", year, week), k.Weekly)
		if i == 0 || i < k.Last || day || ofWeek {
			continue
		}
		out = append(out, f)
	}
	return out
}

// ExpiredOfAll returns those that don't stay, where files may be of several clusters. They are in the order of Sort.
func (k Keep) ExpiredOfAll(files []File) []File {
	clusters := map[string][]File{}
	for _, f := range files {
		clusters[f.Cluster] = append(clusters[f.Cluster], f)
	}
	gone := map[string]bool{}
	for _, of := range clusters {
		for _, f := range k.Expired(of) {
			gone[f.Path] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !gone[f.Path] })
}
