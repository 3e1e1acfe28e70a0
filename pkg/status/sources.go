package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// Intervals between checks whether the API server responds.
const (
	probeEvery  = 5 * time.Second
	probeAgain  = time.Second // while it doesn't
	probeLimit  = 5 * time.Second
	probeMisses = 2 // how many responses may be missing before the API server counts as unavailable; a refused connection counts at once
)

// probe requests the version of the API server repeatedly. An idle connection doesn't show whether the API server still
// responds.
func (f *Follower) probe(ctx context.Context) {
	for missed := 0; ctx.Err() == nil; {
		asked, cancel := context.WithTimeout(ctx, probeLimit)
		body, err := f.client.Discovery().RESTClient().Get().AbsPath("/version").Do(asked).Raw()
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case isSilence(err):
			if missed++; missed >= probeMisses || !errors.Is(err, context.DeadlineExceeded) {
				f.silent(err)
			}
		default:
			missed = 0
			f.answered()
			f.setRelease(body)
		}
		f.mu.Lock()
		wait := probeEvery
		if f.lost != nil {
			wait = probeAgain
		}
		f.mu.Unlock()
		f.sleep(ctx, wait)
	}
}

func (f *Follower) setRelease(body []byte) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(body, &version) != nil || version.GitVersion == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.release != version.GitVersion {
		f.release, f.b.dirtyOther = version.GitVersion, true
		f.stir()
	}
}

// answered records that the API server has responded. After an outage, it repeats all requests through the API server.
func (f *Follower) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	back := f.lost != nil
	f.lost, f.heard = nil, f.now()
	if back {
		f.stir()
		for _, a := range f.askers {
			a.kick()
		}
	}
}

// silent records that the API server doesn't respond. It restarts the watches, because they may hang on a dead connection.
func (f *Follower) silent(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		for _, k := range f.kinds {
			if k.live {
				k.live, k.heard = false, cmp.Or(f.heard, f.now())
			}
			k.store.Restart()
		}
		for _, a := range f.askers {
			a.fresh = false
		}
	}
	f.lost, f.lostAt = err, f.now()
	f.stir()
}

func (f *Follower) up(k *kind) {
	f.answered()
	f.mu.Lock()
	defer f.mu.Unlock()
	k.live, k.err = true, nil
	switch k.name {
	case kindPods:
		f.b.knowPods()
	case kindNodes:
		f.b.knowNodes()
	}
	f.stir()
}

// down records that a kind is no longer watched, and the reason.
func (f *Follower) down(k *kind, err error) {
	f.mu.Lock()
	if k.live {
		k.live, k.heard = false, f.now()
		if slices.ContainsFunc(f.ofServices, func(w servicesWatch) bool { return w.kind == k }) {
			f.asker(SourceServices).kick() // services must now be read more often
		}
	}
	if f.starting(err) {
		err = errStarting
	}
	k.err = err
	f.mu.Unlock()
	if apierrors.IsNotFound(err) {
		k.store.Clear() // the API no longer knows the whole kind
	}
	if isSilence(err) {
		f.silent(err)
		return
	}
	f.stir()
}

// startingFor is how long a newly started API server may reject permitted requests, because it hasn't read its roles
// yet.
const startingFor = 30 * time.Second

var errStarting = errors.New("the API server has just started")

// starting reports whether an API server returned an error because it hasn't read its roles yet. The caller holds the
// lock.
func (f *Follower) starting(err error) bool {
	return isRefused(err) && !f.heard.IsZero() && !f.lostAt.IsZero() && f.now().Sub(f.lostAt) < startingFor
}

// nowSources returns the states of all sources, and reports whether any state has changed. The caller holds the lock.
func (f *Follower) nowSources(now time.Time) ([]Source, bool) {
	var out []Source
	news := false
	for _, name := range SourceNames() {
		s := f.source(name)
		s.Name, s.Updated = name, f.touched[name]
		was, known := f.sources[name]
		switch {
		case s.State == StateStale: // it has its own interval
		case known && was.State == s.State:
			s.Since = was.Since
		default:
			s.Since = now.UTC()
		}
		s.Since, s.Updated = s.Since.UTC(), s.Updated.UTC()
		if !known || was.State != s.State || was.Message != s.Message {
			news = true
		}
		f.sources[name] = s
		out = append(out, s)
	}
	return out, news
}

// grace is how long a watch may be interrupted before the source is reported as stale. Connections end regularly, and a
// new watch usually begins at once.
const grace = 3 * time.Second

func (f *Follower) source(name string) Source {
	for _, a := range f.askers {
		if a.source == name {
			return f.askedSource(a)
		}
	}
	return f.watchedSource(name)
}

// watchedSource returns the state of a source with several watched kinds. While some kinds are loading, the message
// describes the other kinds.
func (f *Follower) watchedSource(name string) Source {
	var refused, failing, loading []string
	var reason error
	kinds, oldest, loaded, now := 0, time.Time{}, false, f.now()
	for _, k := range f.kinds {
		if k.source != name {
			continue
		}
		kinds++
		switch {
		case k.loaded && (k.live || f.lost == nil && now.Sub(k.heard) < grace):
			loaded = true
		case isRefused(k.err):
			if !k.optional {
				refused, reason = append(refused, k.name), k.err
			}
		case apierrors.IsNotFound(k.err):
			switch {
			case k.name == kindNodes, k.name == kindPods: // all clusters have them
				return Source{State: StateFailed, Message: f.cluster.Server + " answers, but not as the API server of a Kubernetes cluster: it doesn't know " + k.name, Hint: kube.RemedyOther}
			case name == SourceJobs:
				return Source{State: StateAbsent, Message: "this cluster runs no jobs: it has no Frameworks", Hint: "start the service that runs them: paictl service start -n job-controller"}
			}
		case k.loaded && k.err == nil && k.heard.IsZero(): // it was listed, and its watch has not begun
			loading = append(loading, k.name)
		case k.loaded:
			loaded = true
			failing = append(failing, k.name)
			if k.err != nil {
				reason = k.err
			}
			if oldest.IsZero() || k.heard.Before(oldest) {
				oldest = k.heard
			}
		case k.err != nil && f.lost == nil && !isSilence(k.err):
			failing, reason = append(failing, k.name), k.err
		default:
			loading = append(loading, k.name)
		}
	}
	s := Source{State: StateCurrent}
	switch {
	case f.lost != nil && loaded:
		return f.away(Source{State: StateStale, Since: cmp.Or(oldest, f.heard)})
	case f.lost != nil:
		return f.away(Source{State: StateFailed})
	case len(failing) > 0 && !oldest.IsZero() && (len(refused) == 0 || len(loading) > 0):
		return Source{State: StateStale, Since: oldest, Message: fmt.Sprintf("the %s are listed again: %v", strings.Join(failing, ", "), reason)}
	case len(refused) > 0:
		s = Source{State: StateFailed, Refused: true, Message: "you may not read " + strings.Join(refused, ", ") + refusal(reason), Hint: hint.Of(f.cluster.Explain(reason))}
	case len(failing) > 0:
		s = Source{State: StateFailed, Message: fmt.Sprintf("the API server doesn't list the %s: %v", strings.Join(failing, ", "), reason), Hint: hint.Of(f.cluster.Explain(reason))}
	}
	if len(loading) > 0 { // the complete message names all kinds that are forbidden or fail
		s.State = StateLoading
		if len(loading) < kinds {
			s.Message = strings.TrimPrefix(s.Message+"; ", "; ") + "the " + strings.Join(loading, ", ") + " have not been listed"
		}
	}
	return s
}

// refusal returns an explanation if the API server rejects the credentials. It returns "" if only a permission is
// missing.
func refusal(err error) string {
	if apierrors.IsUnauthorized(err) {
		return ": the API server doesn't accept these credentials"
	}
	return ""
}

// away returns a copy of a source with the message that the API server doesn't respond.
func (f *Follower) away(s Source) Source {
	err := f.cluster.Explain(f.lost)
	s.Message, s.Hint = err.Error(), hint.Of(err)
	return s
}

func (f *Follower) askedSource(a *asker) Source {
	ever := !a.heard.IsZero()
	switch {
	case f.lost != nil && ever:
		return f.away(Source{State: StateStale, Since: a.heard})
	case f.lost != nil && a.err == nil, f.lost != nil && isSilence(a.err):
		return f.away(Source{State: StateFailed})
	case a.err == nil && !ever:
		return Source{State: StateLoading}
	case a.err == nil && !a.fresh && !a.asked.IsZero():
		return Source{State: StateStale, Since: a.heard, Message: "retrying"}
	case a.err == nil:
		return Source{State: StateCurrent}
	}
	if message, remedy, ok := absent(a.err); ok {
		return Source{State: StateAbsent, Message: message, Hint: remedy}
	}
	err := f.cluster.Explain(a.err)
	s := Source{State: StateFailed, Refused: isRefused(a.err), Message: err.Error(), Hint: cmp.Or(hint.Of(err), a.remedy)}
	if ever {
		s.State, s.Since = StateStale, a.heard
	}
	return s
}

// AbsentError is the error of Options.Services if the cluster doesn't contain the source of services.
type AbsentError struct{ Err error }

func (e *AbsentError) Error() string { return e.Err.Error() }
func (e *AbsentError) Unwrap() error { return e.Err }

// absent returns a message and a remedy if err means that a source doesn't exist in the cluster. Otherwise ok is false.
func absent(err error) (message, remedy string, ok bool) {
	var none *web.NoneError
	var missing *AbsentError
	switch {
	case errors.Is(err, vc.ErrNotInstalled):
		return "no scheduler of GPUs is installed", "start it with: paictl service start -n scheduler", true
	case errors.Is(err, store.ErrNone):
		return "no configuration was pushed to the cluster", "push it with: paictl config push -p DIR", true
	case errors.As(err, &missing):
		return missing.Error(), hint.Of(missing), true
	case errors.As(err, &none):
		return none.Error(), "start it with: paictl service start -n " + none.Service, true
	}
	return "", "", false
}
