package reader

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/openpai/history"
)

const (
	// maxLeftOut is the maximum number of left-out jobs that the report lists.
	maxLeftOut = 1000
	// maxName is the maximum number of characters of a name that are shown. The columns of OpenPAI aren't longer.
	maxName = 256
)

func (t *taker) leave(row *row, why error) {
	t.report.LeftOutCount++
	if len(t.report.LeftOut) < maxLeftOut {
		t.report.LeftOut = append(t.report.LeftOut, history.SkippedJob{Framework: shown(row.name), User: shown(row.user), Name: shown(row.job), Why: why.Error()})
	}
}

// shown returns the beginning of a name. The database of another program may contain names of any length.
func shown(name string) string {
	if len(name) <= maxName {
		return name
	}
	letters := []rune(name)
	return string(letters[:min(len(letters), maxName)])
}

// tally counts the jobs of each person. Its keys are the names of the people.
type tally map[string]*history.Person

func (t tally) add(user string, submitted time.Time, known bool) {
	p := t[user]
	if p == nil {
		p = &history.Person{Name: user, First: submitted, Last: submitted}
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

func (t tally) people() []*history.Person {
	return slices.SortedFunc(maps.Values(t), func(a, b *history.Person) int { return cmp.Compare(a.Name, b.Name) })
}
