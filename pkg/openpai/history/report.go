package history

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Report lists the jobs that were found, and taken.
type Report struct {
	// People are the people whose jobs are taken, by name.
	People []*Person `json:"people"`
	// Jobs are added, or would be; Known already exist.
	Jobs  int `json:"jobs"`
	Known int `json:"known"`
	// LeftOutCount is the number of jobs that aren't taken, and LeftOut are the first of them.
	LeftOutCount int       `json:"leftOutCount"`
	LeftOut      []LeftOut `json:"leftOut"`
	// WithoutText is how many jobs are taken without their text.
	WithoutText int `json:"withoutText,omitempty"`
}

// Person is a user with jobs.
type Person struct {
	Name string `json:"name"`
	// Here is whether the person is in the cluster.
	Here  bool `json:"here"`
	Jobs  int  `json:"jobs"`
	Known int  `json:"known"`
	// First and Last are when the first and the last of them were submitted.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// LeftOut is a job that isn't taken, and why.
type LeftOut struct {
	Framework string `json:"framework"` // its name in the database
	User      string `json:"user"`
	Name      string `json:"name"`
	Why       string `json:"why"`
}

// maxLeftOut is how many of the jobs that are left out are named.
const maxLeftOut = 1000

func (r *Report) leave(row *row, why error) {
	r.LeftOutCount++
	if len(r.LeftOut) < maxLeftOut {
		r.LeftOut = append(r.LeftOut, LeftOut{Framework: row.name, User: row.user, Name: row.job, Why: why.Error()})
	}
}

// tally counts jobs by their people.
type tally map[string]*Person

func (t tally) add(user string, submitted time.Time, known bool) {
	p := t[user]
	if p == nil {
		p = &Person{Name: user, First: submitted, Last: submitted}
		t[user] = p
	}
	if known {
		p.Known++
	} else {
		p.Jobs++
	}
	if submitted.Before(p.First) {
		p.First = submitted
	}
	if submitted.After(p.Last) {
		p.Last = submitted
	}
}

func (t tally) people() []*Person {
	return slices.SortedFunc(maps.Values(t), func(a, b *Person) int { return cmp.Compare(a.Name, b.Name) })
}
