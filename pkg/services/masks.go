package services

import (
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// shortestMask is the minimum length of masked secrets. Masking shorter secrets could make messages unreadable.
const shortestMask = 4

// masks masks known secrets in the output of other programs, such as the last lines of a container's log or a response of the API server.
type masks struct{ replacer *strings.Replacer }

// newMasks returns masks for the secrets of a configuration and its services. Each function in more can add further secrets.
func newMasks(c *config.Cluster, all []*catalogue.Service, more ...func(add func(secret.String))) *masks {
	var secrets []string
	add := func(s secret.String) {
		for l := range strings.Lines(s.Reveal()) { // a key of several lines is printed line by line
			if l = strings.TrimSpace(l); len(l) >= shortestMask {
				secrets = append(secrets, l)
			}
		}
	}
	if c != nil {
		add(c.Services.Cluster.DockerRegistry.Password)
		add(c.Layout.SSH.Password)
		for _, m := range c.Layout.MachineList {
			if m.SSH != nil {
				add(m.SSH.Password)
			}
		}
	}
	for _, s := range all {
		for _, v := range s.Credentials {
			add(v)
		}
		hidden(s.ReleaseValues(), s.ShownValues(), add)
	}
	for _, m := range more {
		m(add)
	}
	// Replace longer secrets first, because a secret may be a prefix of another secret.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range slices.Compact(secrets) {
		pairs = append(pairs, s, secret.Mask)
	}
	if len(pairs) == 0 {
		return &masks{}
	}
	return &masks{replacer: strings.NewReplacer(pairs...)}
}

// hidden calls add for each string in value whose counterpart in shown is masked.
func hidden(value, shown any, add func(secret.String)) {
	if shown == secret.Mask {
		texts(value, add)
		return
	}
	values, ok := value.(map[string]any)
	if !ok {
		return
	}
	masked, _ := shown.(map[string]any)
	for k, v := range values {
		hidden(v, masked[k], add)
	}
}

func texts(v any, add func(secret.String)) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			texts(x, add)
		}
	case []any:
		for _, x := range v {
			texts(x, add)
		}
	case string:
		add(secret.String(v))
	}
}

func (m *masks) text(s string) string {
	if m.replacer == nil {
		return s
	}
	return m.replacer.Replace(s)
}

type maskedError struct {
	text string
	err  error
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.err }

func (m *masks) error(err error) error {
	if text := m.text(err.Error()); text != err.Error() {
		return maskedError{text, err}
	}
	return err
}

func (m *masks) event(e Event) Event {
	if m.replacer == nil {
		return e
	}
	e.Message, e.Error, e.Hint = m.text(e.Message), m.text(e.Error), m.text(e.Hint)
	if e.Problem != nil {
		p := m.problem(*e.Problem)
		e.Problem = &p
	}
	if e.State != nil {
		s := m.state(*e.State)
		e.State = &s
	}
	if e.Plan != nil {
		p := m.plan(*e.Plan)
		e.Plan = &p
	}
	return e
}

func (m *masks) problem(p ready.Problem) ready.Problem {
	p.Message, p.Hint, p.Log = m.text(p.Message), m.text(p.Hint), slices.Clone(p.Log)
	for i := range p.Log {
		p.Log[i] = m.text(p.Log[i])
	}
	return p
}

func (m *masks) state(s ready.State) ready.State {
	s.Problems = slices.Clone(s.Problems)
	for i := range s.Problems {
		s.Problems[i] = m.problem(s.Problems[i])
	}
	return s
}

func (m *masks) plan(p release.Plan) release.Plan {
	p.Changes = slices.Clone(p.Changes)
	for i := range p.Changes {
		p.Changes[i].Diff = m.text(p.Changes[i].Diff)
	}
	return p
}
