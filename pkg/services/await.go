package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// grace is how long a final problem must persist before the run stops waiting. A node may just be joining, or a registry may just be restarting.
const grace = 15 * time.Second

// calm is how long a problem must persist before paictl prints the problem. Kubelets and the scheduler need a few seconds to process new objects.
const calm = 5 * time.Second

// awaitOne waits until the service is ready. awaitOne reports each problem only once.
func (r *run) awaitOne(ctx context.Context, s *catalogue.Service, out release.Outcome) error {
	if r.o.Wait <= 0 {
		return nil
	}
	told := map[string]bool{}
	state, err := r.Ready.Wait(ctx, s.Namespace, out.Manifest, ready.WaitOptions{
		Timeout: r.o.Wait, Grace: grace, Calm: calm,
		OnChange: func(st ready.State) { r.progress(s.Name, st, told) },
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if unknown := (*ready.UnknownError)(nil); errors.As(err, &unknown) {
		return err // the problems may no longer exist
	}
	return unready(state, err)
}

// progress reports a state. progress leaves out problems that were already reported.
func (r *run) progress(service string, st ready.State, told map[string]bool) {
	for _, p := range st.Problems {
		if key := p.Object + "\x00" + p.Reason; !told[key] {
			told[key] = true
			r.emit(Event{Kind: EventProblem, Service: service, Problem: &p})
		}
	}
	r.emit(Event{Kind: EventProgress, Service: service, State: &st})
}

// reasonsShown is the maximum number of problems in an error. The events contain all problems.
const reasonsShown = 3

// unready returns the error of a service that didn't become ready. The error lists the known problems. Without known problems, it wraps err, which
// only reports a timeout.
func unready(st ready.State, err error) error {
	if len(st.Problems) == 0 {
		return err
	}
	problems := slices.Clone(st.Problems)
	slices.SortStableFunc(problems, func(a, b ready.Problem) int { return rank(a) - rank(b) })
	var reasons []string
	remedy := ""
	for _, p := range problems {
		if len(reasons) < reasonsShown {
			reasons = append(reasons, p.Text())
		}
		if remedy == "" {
			remedy = p.Hint
		}
	}
	text := strings.Join(reasons, "; ")
	if n := len(problems) - len(reasons); n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	if remedy == "" {
		return errors.New(text)
	}
	return hint.Errorf(remedy, "%s", text)
}

func rank(p ready.Problem) int {
	if p.Final {
		return 0
	}
	return 1
}
