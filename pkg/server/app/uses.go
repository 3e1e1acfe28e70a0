package app

import (
	"sync"
	"time"
)

// Each counted use writes a whole template. So a person's uses of a template count only once in usesTime, and only for maxUses templates.
const (
	usesTime = time.Hour
	maxUses  = 60
)

// uses records which templates each person has used recently.
type uses struct {
	mu sync.Mutex
	by map[string]*used
}

// used holds the ids of the templates that one person has used since a time. It is reset after usesTime.
type used struct {
	since time.Time
	ids   map[string]bool
}

// first records a use of a template, and reports whether the use counts.
func (u *uses) first(person, id string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, of := range u.by {
		if now.Sub(of.since) >= usesTime {
			delete(u.by, name)
		}
	}
	if u.by == nil {
		u.by = map[string]*used{}
	}
	of := u.by[person]
	if of == nil {
		of = &used{now, map[string]bool{}}
		u.by[person] = of
	}
	if of.ids[id] || len(of.ids) >= maxUses {
		return false
	}
	of.ids[id] = true
	return true
}
