package ready

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// suspicion is a suspected problem in a snapshot. refine checks whether the problem exists.
type suspicion struct {
	Problem
	// group is the affected workload. Each cause is reported only once per group, even if many pods are affected.
	group string
	// refine reads events or a log, and returns a more precise problem. refine returns false if the problem doesn't exist.
	refine func(ctx context.Context, p Problem, d details) (Problem, bool)
}

func (s suspicion) key() string { return s.group + "\x00" + s.Reason }

// cause is a problem and the number of other affected objects. The key stays the same when pods are replaced and when refine changes the message.
type cause struct {
	Problem
	key    string
	others int
}

// asked is the maximum number of objects in a group whose suspicions are refined.
const asked = 2

// resolve converts suspicions to problems. resolve returns each cause once, with the number of other affected objects. Final problems come first.
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
		// refine may have changed the reason, but the key stays the same.
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

// older reports whether now is at least the given duration after since. older returns false if since is zero.
func older(now, since time.Time, than time.Duration) bool {
	return !since.IsZero() && now.Sub(since) >= than
}
