package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Silence suppresses the notifications about alerts for a time.
type Silence struct {
	alerts.Silence
	// Alerts is the number of firing alerts that the silence suppresses.
	Alerts int
}

// NewSilence describes a new silence.
type NewSilence struct {
	Matchers []alerts.Matcher
	For      time.Duration
	Reason   string
}

const (
	// minSilence and maxSilence limit the duration of a silence. A forgotten silence must not last for years.
	minSilence = time.Minute
	maxSilence = 90 * 24 * time.Hour
	// maxMatchers limits the number of a silence's matchers. maxMatcher limits each of their texts, in bytes.
	maxMatchers = 32
	maxMatcher  = 1024
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (n *NewSilence) check() error {
	if len(n.Matchers) == 0 || len(n.Matchers) > maxMatchers {
		return wire.Bad(fmt.Sprintf(`"matchers" must have 1 to %d labels of the alerts`, maxMatchers))
	}
	selects := false
	for i := range n.Matchers {
		m := &n.Matchers[i]
		if !labelName.MatchString(m.Name) || len(m.Name) > maxMatcher {
			return wire.Bad(fmt.Sprintf(`"matchers[%d].label" must be the name of a label, such as alertname`, i))
		}
		if len(m.Value) > maxMatcher {
			return wire.Bad(fmt.Sprintf(`"matchers[%d].value" may have %d bytes`, i, maxMatcher))
		}
		empty := m.Value == ""
		if m.Regex {
			whole, err := regexp.Compile("^(?:" + m.Value + ")$")
			if err != nil {
				return wire.Bad(fmt.Sprintf(`"matchers[%d].value" is not a regular expression: %v`, i, err))
			}
			empty = whole.MatchString("")
		}
		selects = selects || empty == m.Not()
	}
	switch {
	case !selects:
		return wire.Bad(`"matchers" would match every alert: at least one label must have a value`)
	case n.For < minSilence || n.For > maxSilence:
		return wire.Bad(fmt.Sprintf(`"seconds" must be from %d to %d`, int(minSilence.Seconds()), int(maxSilence.Seconds())))
	}
	return checkActionReason(n.Reason, maxActionReason)
}

// Silences returns the active and pending silences. Only administrators may call it.
func (d *Actions) Silences(ctx context.Context) ([]Silence, error) {
	if err := rules.Class("silence.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	all, err := d.app.Alerts.Silences(ctx)
	if err != nil {
		return nil, err
	}
	firing, err := d.app.Alerts.All(ctx)
	if err != nil {
		return nil, err
	}
	held := map[string]int{}
	for i := range firing {
		for _, id := range firing[i].Status.SilencedBy {
			held[id]++
		}
	}
	out := []Silence{}
	for _, s := range all {
		out = append(out, Silence{s, held[s.ID]})
	}
	return out, nil
}

// Silence creates a silence in the name of the caller.
func (d *Actions) Silence(ctx context.Context, n NewSilence) (made *Silence, err error) {
	thing := rules.Object{Kind: rules.KindSilence}
	detail := map[string]string{"matchers": wire.Shown(matchersText(n.Matchers)), "for": n.For.String(), "reason": wire.Shown(n.Reason)}
	err = d.did(ctx, "silence.create", thing, detail, func(ctx context.Context) error {
		if err := rules.Class("silence.create", &d.caller.Subject); err != nil {
			return err
		}
		if err := n.check(); err != nil {
			return err
		}
		by, err := d.requester(ctx)
		if err != nil {
			return err
		}
		now := d.app.now().UTC().Truncate(time.Second)
		s := alerts.Silence{Matchers: n.Matchers, StartsAt: now, EndsAt: now.Add(n.For), CreatedBy: by.Name, Comment: strings.TrimSpace(n.Reason)}
		if s.ID, err = d.app.Alerts.Add(ctx, s); err != nil {
			return silenceError("", err)
		}
		s.Status.State = alerts.SilenceActive
		detail["silence"] = s.ID
		made = &Silence{Silence: s}
		if all, err := d.app.Alerts.All(ctx); err == nil { // the silence exists, even if the alerts can't be read
			for i := range all {
				for _, id := range all[i].Status.SilencedBy {
					if id == s.ID {
						made.Alerts++
					}
				}
			}
		}
		return nil
	})
	return made, err
}

// EndSilence ends a silence. It does nothing if the silence has already ended.
func (d *Actions) EndSilence(ctx context.Context, id string) (ended *Silence, err error) {
	detail := map[string]string{}
	err = d.did(ctx, "silence.end", rules.Object{Kind: rules.KindSilence, Name: wire.Shown(id)}, detail, func(ctx context.Context) error {
		if err := rules.Class("silence.end", &d.caller.Subject); err != nil {
			return err
		}
		s, err := d.app.Alerts.Silence(ctx, id)
		if err != nil {
			return silenceError(id, err)
		}
		ended = &Silence{Silence: *s}
		detail["matchers"], detail["by"] = wire.Shown(matchersText(s.Matchers)), wire.Shown(s.CreatedBy)
		if s.Status.State == alerts.SilenceExpired {
			return errNothing
		}
		if err := d.app.Alerts.End(ctx, id); err != nil {
			return silenceError(id, err)
		}
		ended.Status.State, ended.EndsAt = alerts.SilenceExpired, d.app.now().UTC().Truncate(time.Second)
		return nil
	})
	return ended, err
}

// matchersText formats matchers in the syntax of Alertmanager.
func matchersText(all []alerts.Matcher) string {
	var out []string
	for i := range all {
		m := &all[i]
		sign := map[[2]bool]string{{false, false}: "=", {true, false}: "=~", {false, true}: "!=", {true, true}: "!~"}[[2]bool{m.Regex, m.Not()}]
		out = append(out, m.Name+sign+m.Value)
	}
	return strings.Join(out, ", ")
}

// silenceError converts an error of Alertmanager about a silence to an error for the caller.
func silenceError(id string, err error) error {
	if invalid, is := errors.AsType[*alerts.InvalidError](err); is {
		return wire.Bad(invalid.Error())
	}
	if errors.Is(err, alerts.ErrNoSilence) {
		return &wire.Error{Status: http.StatusNotFound, Code: codeNoSilence, Message: fmt.Sprintf("Silence %s is not found.", wire.Shown(id)), Remedy: "see the silences with: paictl alert silences"}
	}
	return err
}
