package gangs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// bodyFile is the file name in findings about a request's body.
const bodyFile = "hivedscheduler.yaml"

const (
	// leastCells is the number of cells up to which a validation is always allowed. A cell takes half a KiB of memory.
	leastCells = 64 << 10
	// validations is the maximum number of concurrent validations. Other requests wait for at most validatesWait.
	validations   = 1
	validatesWait = 5 * time.Second
)

// errBusy means that the requests of other clients take too long.
var errBusy = errors.New("it is busy with requests of others: try again")

// takeTurn waits until a channel has room for another concurrent request. The caller must call end at the end of the request.
func takeTurn(ctx context.Context, answering chan struct{}, most time.Duration) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case answering <- struct{}{}:
		return func() { <-answering }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// validateNext works like validate, but limits the number of concurrent requests.
func (b *Store) validateNext(ctx context.Context, text string) (*api.Validation, error) {
	end, err := takeTurn(ctx, b.validating, validatesWait)
	if err != nil {
		return nil, err
	}
	defer end()
	return b.validate(text)
}

// validate returns the effects of a configuration. It creates the cells without the lock, and holds the lock only while it
// carries over the gangs.
func (b *Store) validate(text string) (*api.Validation, error) {
	b.mu.Lock()
	active := b.active
	b.mu.Unlock()
	if active == nil {
		return nil, errNotLeading
	}
	whole, err := complete(text, active.text)
	if err != nil {
		return nil, err
	}
	next, findings := parseWithin(bodyFile, whole, max(leastCells, 2*active.cells.Cells()))
	out := &api.Validation{Valid: len(findings.Errors()) == 0, Problems: problems(findings)}
	if !out.Valid {
		return out, nil
	}
	core, err := cell.New(next.cells)
	if err != nil {
		return refuse(out, err), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nil {
		return nil, errNotLeading
	}
	downgrades, err := b.state.core.CarryOver(core)
	if err != nil {
		return refuse(out, err), nil
	}
	out.Changes = append(b.state.downgradesAsChanges(downgrades), b.state.refusals(core)...)
	out.Changes = append(out.Changes, b.state.orphans(active.cells, next.cells, out.Changes)...)
	out.VirtualClusters = b.state.changedVirtualClusters(active.cells, next.cells, core)
	return out, nil
}

func refuse(out *api.Validation, err error) *api.Validation {
	out.Valid = false
	out.Problems = append(out.Problems, api.Problem{Severity: "error", Message: err.Error()})
	return out
}

// complete adds the current hardware, and whether its machines are reserved, to a text that contains only virtual clusters. It
// appends the hardware, so that the line numbers stay the same.
func complete(text, active string) (string, error) {
	var body, now map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(text), &body); err != nil {
		return text, nil //nolint:nilerr // the parser reports it better
	}
	if _, there := body["physicalCluster"]; there || body == nil {
		return text, nil
	}
	if err := yaml.Unmarshal([]byte(active), &now); err != nil {
		return "", fmt.Errorf("read the configuration in use: %w", err)
	}
	left := map[string]*yaml.Node{}
	for _, key := range []string{"physicalCluster", "reserveGPUMachines"} {
		_, there := body[key]
		if value, has := now[key]; has && !there {
			left[key] = &value
		}
	}
	rest, err := yaml.Marshal(left)
	if err != nil {
		return "", fmt.Errorf("write the hardware in use: %w", err)
	}
	return strings.TrimRight(text, "\n") + "\n" + string(rest), nil
}

func problems(findings strictyaml.Findings) []api.Problem {
	var out []api.Problem
	for _, f := range findings {
		severity := "error"
		if f.Severity == strictyaml.Warning {
			severity = "warning"
		}
		out = append(out, api.Problem{Severity: severity, Line: f.Line, Column: f.Column, Path: f.Field, Message: f.Message, Remedy: f.Remedy})
	}
	return out
}

func (s *state) downgradesAsChanges(downgrades []cell.Downgrade) []api.Change {
	var out []api.Change
	for _, d := range downgrades {
		c := api.Change{VC: d.VC, Group: d.Gang, Effect: api.Downgraded, Reason: d.Reason}
		if d.Restored {
			c.Effect = api.Restored
		}
		if g, ok := s.core.Gang(d.VC, d.Gang); ok {
			c.GPUs, c.CPUCells, c.User = g.GPUs, g.CPUCells, g.User
		}
		if g := s.gangs[gangKey{d.VC, d.Gang}]; g != nil {
			c.Pods = g.podNames()
		}
		out = append(out, c)
	}
	return out
}

func (g *gang) podNames() []string {
	var out []string
	for _, p := range g.pods {
		out = append(out, p.key)
	}
	return out
}

// refusals returns the waiting gangs whose requests the next configuration would reject.
func (s *state) refusals(next *cell.Scheduler) []api.Change {
	var out []api.Change
	for _, w := range s.order() {
		g := s.gangs[gangKey{w.VC, w.Name}]
		p := g.first()
		then := refusal(next, p)
		if then == "" {
			continue
		}
		if refusal(s.core, p) == "" {
			c := api.Change{VC: g.vc, Group: g.name, Effect: api.Refused, Pods: g.podNames(), User: p.request.User, Reason: then}
			if asks := s.asks(g); asks.CPUCells > 0 {
				c.CPUCells = asks.CPUCells
			} else {
				c.GPUs = asks.GPUs + asks.ShareOfGPUs
			}
			out = append(out, c)
		}
	}
	return out
}

// orphans returns the gangs of removed virtual clusters, except the gangs in told.
func (s *state) orphans(now, next cell.Config, told []api.Change) []api.Change {
	var out []api.Change
	for _, key := range slices.SortedFunc(maps.Keys(s.gangs), func(a, b gangKey) int { return cmp.Or(cmp.Compare(a.vc, b.vc), cmp.Compare(a.name, b.name)) }) {
		if !hasVC(now, key.vc) || hasVC(next, key.vc) ||
			slices.ContainsFunc(told, func(c api.Change) bool { return c.VC == key.vc && c.Group == key.name }) {
			continue
		}
		g := s.gangs[key]
		c := api.Change{VC: key.vc, Group: key.name, Effect: api.Orphaned, Pods: g.podNames()}
		if status, ok := s.core.Gang(key.vc, key.name); ok {
			c.GPUs, c.CPUCells, c.User = status.GPUs, status.CPUCells, status.User
		} else { // the gang waits, and can't start with the present configuration either
			asks := s.asks(g)
			c.Effect, c.GPUs, c.CPUCells = api.Refused, asks.GPUs+asks.ShareOfGPUs, asks.CPUCells
		}
		out = append(out, c)
	}
	return out
}

// refusal explains why both requests of a waiting pod would be rejected. It returns "" if at least one of them would be
// accepted.
func refusal(core *cell.Scheduler, p *pod) (text string) {
	for _, r := range []*cell.Request{p.request, alternative(core, p)} {
		if r == nil {
			continue
		}
		e := core.Why(r)
		if !refused(&e) {
			return ""
		}
		text = cmp.Or(text, e.Sentence)
	}
	return text
}

func refused(e *cell.Explanation) bool {
	return e.Code == cell.Unsatisfiable || e.Code == "Malformed" || e.Code == cell.NoVirtualCluster
}

// changedVirtualClusters returns the virtual clusters whose cells differ between two configurations.
func (s *state) changedVirtualClusters(now, then cell.Config, core *cell.Scheduler) []api.ChangedVirtualCluster {
	var out []api.ChangedVirtualCluster
	before, after := withGuaranteed(now, s.core), withGuaranteed(then, core)
	for i := range before {
		c := api.ChangedVirtualCluster{Name: before[i].Name, Before: &before[i]}
		if j := slices.IndexFunc(after, func(v api.VirtualCluster) bool { return v.Name == c.Name }); j >= 0 {
			c.After = &after[j]
		}
		if c.After == nil || !c.Before.SameOwner(c.After) || c.Before.Guaranteed != c.After.Guaranteed || c.Before.CPUCells() != c.After.CPUCells() {
			out = append(out, c)
		}
	}
	for j := range after {
		if !slices.ContainsFunc(before, func(v api.VirtualCluster) bool { return v.Name == after[j].Name }) {
			out = append(out, api.ChangedVirtualCluster{Name: after[j].Name, After: &after[j]})
		}
	}
	slices.SortFunc(out, func(a, b api.ChangedVirtualCluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func withGuaranteed(c cell.Config, core *cell.Scheduler) []api.VirtualCluster {
	out, stats := api.Owners(c), core.Stats()
	for i := range out {
		for j := range stats.VirtualClusters {
			if stats.VirtualClusters[j].Name == out[i].Name {
				fill(&out[i], &stats.VirtualClusters[j])
			}
		}
	}
	return out
}
