package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/services/state"
)

func (n *Counts) countService(s *Service) {
	switch s.State {
	case state.StateDisabled, state.StateStopped, state.StateNotInstalled:
		return // it isn't supposed to run, or not yet
	}
	n.Services++
	if s.State == state.StateReady {
		n.ServicesReady++
	}
}

func (n *Counts) countJob(j *Job, now time.Time) {
	switch p := job.Phase(j.State); {
	case p == job.Failed:
		if j.Completed != nil && now.Sub(*j.Completed) < failedFor {
			n.Failed++
		}
	case p.Done():
	case p == job.Waiting, p == job.Queued, p == job.Retry:
		n.Waiting++
	default:
		n.Running++
	}
}

// rank returns the severity of a level. The worst level is 0.
func rank(level string) int {
	return slices.Index([]string{LevelCritical, LevelWarning, LevelUnknown, LevelOK}, level)
}

// CompareAlerts sorts silenced alerts last, then by severity (worst first), then by time (newest first).
func CompareAlerts(a, b Alert) int {
	silent := func(x Alert) int {
		if x.Silenced {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(silent(a), silent(b)), cmp.Compare(rank(a.Level()), rank(b.Level())), b.Since.Compare(a.Since), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Summary, b.Summary))
}

// Level returns the alert's severity as a level. Unknown severities count as warnings, because custom rules may use any
// text.
func (a *Alert) Level() string {
	switch a.Severity {
	case "critical", "page", "error":
		return LevelCritical
	case "info", "none":
		return LevelOK
	}
	return LevelWarning
}

// folder collects problems. It merges problems of the same kind into one problem with a count.
type folder struct {
	problems []Problem
	at       map[string]int // by the key of equal problems
}

func (f *folder) add(same string, p Problem) {
	key := p.Level + "\x00" + p.Kind + "\x00" + same
	if i, ok := f.at[key]; ok {
		f.problems[i].Others++
		return
	}
	f.at[key] = len(f.problems)
	f.problems = append(f.problems, p)
}

func (f *folder) found(same, machine string, c *checks.Finding) {
	level := map[string]string{checks.Error: LevelCritical, checks.Warning: LevelWarning}
	f.add(same, Problem{Level: level[c.Severity], Kind: "machine", Name: machine, Message: c.Message, Hint: c.Remedy})
}

func judge(c *Cluster) Verdict {
	f := &folder{at: map[string]int{}}
	judgeSources(f, c.Sources)
	for i := range c.Machines {
		judgeMachine(f, &c.Machines[i], c.At)
	}
	for i := range c.Services {
		judgeService(f, &c.Services[i])
	}
	for i := range c.VirtualClusters {
		judgeVirtualCluster(f, &c.VirtualClusters[i])
	}
	for i := range c.Alerts {
		if a := &c.Alerts[i]; !a.Silenced && a.Level() != LevelOK {
			f.add(a.Name, Problem{Level: a.Level(), Kind: "alert", Name: a.Name, Message: cmp.Or(a.Summary, a.Name), Hint: a.Runbook})
		}
	}
	slices.SortStableFunc(f.problems, func(a, b Problem) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
	v := Verdict{Level: LevelOK, Problems: f.problems}
	switch {
	case len(f.problems) > 0:
		v.Level = f.problems[0].Level
	case c.Loading():
		v.Level = LevelUnknown // a source that hasn't responded yet isn't a problem
	}
	return v
}

// judgeSources adds the sources that can't be read. It skips sources that fail for the same reason as the API server.
func judgeSources(f *folder, sources []Source) {
	told := ""
	for i := range sources {
		s := &sources[i]
		if s.Name == SourceAPI && s.State != StateCurrent {
			told = s.Message
		} else if told != "" && s.Message == told {
			continue // all sources are read through the API server
		}
		p := Problem{Level: LevelUnknown, Kind: "source", Name: s.Name, Message: s.Message, Hint: s.Hint}
		switch s.State {
		case StateFailed, StateStale:
			if s.Name == SourceAPI && !s.Refused {
				p.Level = LevelCritical
			}
			f.add(s.Message, p)
		}
	}
}

func judgeMachine(f *folder, m *Machine, now time.Time) {
	p := Problem{Kind: "machine", Name: m.Name, Message: cmp.Or(m.Message, "is "+m.State), Hint: m.Hint}
	switch m.State {
	case MachineNotReady, MachineUnknown:
		p.Level = LevelCritical
		if m.Since.IsZero() { // its state was never reported
			p.Level = LevelUnknown
		}
		f.add(m.State+m.Message, p)
	case MachineOutside, MachineUnlisted:
		p.Level = LevelWarning
		f.add(m.State, p)
	}
	for _, pressure := range m.Pressure {
		remedy, _ := checks.Condition(pressure)
		f.add(pressure, Problem{Level: LevelWarning, Kind: "machine", Name: m.Name, Message: "has the condition: " + rules.Words(pressure), Hint: remedy})
	}
	if !m.Certificates.IsZero() {
		if c := checks.NewCertificate("", m.Certificates, now).Check(); c != nil {
			f.found("certificate", m.Name, c)
		}
	}
	for i := range m.GPUs {
		g := &m.GPUs[i]
		if g.Health != GPUSick && g.Health != GPUMissing {
			continue
		}
		f.add(g.Health+g.Reason, Problem{Level: LevelWarning, Kind: "gpu", Name: fmt.Sprintf("%s/%d", m.Name, g.Index), Message: g.trouble()})
	}
}

// trouble describes the problem of a GPU in one line.
func (g *GPU) trouble() string {
	if g.Reason == "" {
		return g.Health
	}
	return g.Health + ": " + g.Reason
}

func judgeService(f *folder, s *Service) {
	p, key := Problem{Kind: "service", Name: s.Name}, s.Name
	switch s.State {
	case state.StateUnknown:
		p.Level = LevelUnknown
		if len(s.Problems) > 0 { // many services are unknown for one reason
			key = s.Problems[0].Message
		}
	case state.StateFailed:
		p.Level = LevelCritical
	case state.StateStarting, state.StateOrphan:
		p.Level = LevelWarning
	default:
		return
	}
	p.Message = s.State
	if len(s.Problems) > 0 {
		first := &s.Problems[0]
		p.Message, p.Hint = s.State+": "+first.Text(), first.Hint
	}
	f.add(key, p)
}

func judgeVirtualCluster(f *folder, v *VirtualCluster) {
	if v.Deleted {
		f.add("deleted", Problem{Level: LevelWarning, Kind: "vc", Name: v.Name, Message: "the configuration no longer has it, but jobs still use it",
			Hint: "see them with: paictl job list --vc " + v.Name})
		return
	}
	if v.Bad > 0 {
		f.add("bad", Problem{Level: LevelWarning, Kind: "vc", Name: v.Name, Message: fmt.Sprintf("%d of its %d GPUs are not usable", v.Bad, v.Guaranteed)})
	}
}
