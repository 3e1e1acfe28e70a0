package ready

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// suspicion is a suspected problem that was found in a snapshot. refine checks whether it is a problem.
type suspicion struct {
	Problem
	// group is the affected workload. Each cause is reported only once per group, even if many pods are affected.
	group string
	// refine reads events or a log, and returns a more exact problem. It returns false if there is no problem.
	refine func(ctx context.Context, p Problem, d details) (Problem, bool)
}

func (s suspicion) key() string { return s.group + "\x00" + s.Reason }

// cause is a problem and the number of other objects that also have this problem. Its key doesn't change when pods are replaced, or when refine
// rewords the problem.
type cause struct {
	Problem
	key    string
	others int
}

// asked is the maximum number of objects of a group that are checked for the same suspicion.
const asked = 2

// resolve converts suspicions to problems. It returns each cause once, with the number of other affected objects. Final problems come first.
func resolve(ctx context.Context, found []suspicion, d details) []cause {
	var order []string
	causes, tries := map[string]*cause{}, map[string]int{}
	for _, s := range found {
		key := s.key()
		if c := causes[key]; c != nil {
			if c.Object != s.Object {
				c.others++
			}
			c.Final = c.Final || s.Final
			continue
		}
		if tries[key]++; tries[key] > asked {
			continue
		}
		p, ok := s.Problem, true
		if s.refine != nil {
			p, ok = s.refine(ctx, p, d)
		}
		if !ok {
			continue
		}
		// refine may have found a different reason, but the key stays the same.
		causes[key] = &cause{Problem: p, key: key}
		order = append(order, key)
	}
	var out []cause
	for _, key := range order {
		c := causes[key]
		if c.others > 0 {
			c.Message += fmt.Sprintf(" (and %s more)", plural.Of(c.others, "object"))
		}
		c.Message = clean(c.Message, messageLimit)
		if !slices.ContainsFunc(out, func(o cause) bool { return o.Object == c.Object && o.Reason == c.Reason }) {
			out = append(out, *c)
		}
	}
	slices.SortStableFunc(out, func(a, b cause) int { return rank(a.Problem) - rank(b.Problem) })
	return out
}

func rank(p Problem) int {
	if p.Final {
		return 0
	}
	return 1
}

// older reports whether a time was at least a duration ago. It returns false for the zero time.
func older(now, since time.Time, than time.Duration) bool {
	return !since.IsZero() && now.Sub(since) >= than
}
