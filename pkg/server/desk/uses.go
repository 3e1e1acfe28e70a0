package desk

import (
	"sync"
	"time"
)

// Each use that is counted writes a whole template. A person's are counted once for a template in usesTime, and for so many templates.
const (
	usesTime = time.Hour
	maxUses  = 60
)

// uses knows which templates people have used.
type uses struct {
	mu sync.Mutex
	by map[string]*used
}

// used is what one person has used since a moment, by the ids of templates.
type used struct {
	since time.Time
	ids   map[string]bool
}

// first reports whether a use counts.
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
