package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/ssh"
)

func TestTheRetryReachesNoFurtherThanTheRunDid(t *testing.T) {
	s := preflightSpec(t, 3) // m1, w1, w2, w3
	again := func(hosts []string) string { return "paictl node remove " + strings.Join(hosts, " ") }
	for _, c := range []struct {
		name   string
		limit  string
		failed string
		again  func([]string) string
		want   string
	}{
		{"all machines, all failed", "", "m1 w1 w2 w3", nil, "up"},
		{"all machines, some failed", "", "w1 w3", nil, "up --limit w1,w3"},
		{"one machine, which failed", "w2", "w2", nil, "up --limit w2"},
		{"named by its address", "10.0.0.12", "w2", nil, "up --limit w2"},
		{"two machines, both failed", "w1 w2", "w1 w2", nil, "up --limit w1,w2"},
		{"two machines, one failed", "w1 w2", "w2", nil, "up --limit w2"},
		{"the first machine failed for those that were named", "w1 w2", "m1", nil, "up --limit w1,w2"},
		{"it failed, and one that was named", "w1 w2", "m1 w2", nil, "up --limit w1,w2"},
		{"machines are arguments, all failed", "w1 w2", "w1 w2", again, "paictl node remove w1 w2"},
		{"machines are arguments, one failed", "w1 w2", "w2", again, "paictl node remove w2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := &sink{}
			r := engine.NewRun(s, engine.Options{Sink: events, Clock: time.Now, Command: "up", Retry: c.again, Limit: strings.Fields(c.limit)})
			nodes, err := r.Selected()
			require.NoError(t, err)
			for name := range strings.FieldsSeq(c.failed) {
				n, err := s.Node(name)
				require.NoError(t, err)
				r.SetAside(n, "connect", errors.New("off"))
			}
			partial, ok := errors.AsType[*engine.PartialError](r.Summary("up", r.Reached(nodes), nil))
			require.True(t, ok)
			assert.Equal(t, c.want, partial.Retry)
			o := outcome{events: events.events}
			assert.Equal(t, c.want, o.summary().Retry)
		})
	}
}

func TestALimitedRunThatFailedIsRetriedLimited(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	l.host("w2").server.Close()
	limited := func(o *labOptions, _ *ssh.Options) { o.Limit = []string{"w2"} }
	for name, o := range map[string]*outcome{
		"up":      l.up(t.Context(), limited),
		"dry run": l.up(t.Context(), limited, func(o *labOptions, _ *ssh.Options) { o.DryRun = true }),
		"down":    l.down(t.Context(), false, limited),
	} {
		partial, ok := errors.AsType[*engine.PartialError](o.err)
		require.True(t, ok, "%s: %v", name, o.err)
		assert.Equal(t, 1, partial.ExitCode())
		assert.True(t, strings.HasSuffix(partial.Retry, " --limit w2"), "%s: %s", name, partial.Retry)
	}
}

func TestPreflightDoesNotCallAHostReadyThatItCouldNotAsk(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	l.host("w2").server.Close()
	findings, err := Preflight(t.Context(), l.spec(), l.options(), false)
	partial, ok := errors.AsType[*engine.PartialError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 3, partial.ExitCode())
	last := findings[len(findings)-1]
	assert.Equal(t, []string{"w2", "connect", preflight.SeverityError}, []string{last.Host, last.Check, last.Severity})
	assert.Contains(t, last.Message, "not checked: ")
	assert.Contains(t, last.Remedy, "sshd")

	l.host("m1").write("/proc/1/comm", "init\n")
	findings, err = Preflight(t.Context(), l.spec(), l.options(), false)
	_, refused := errors.AsType[*engine.PreflightError](err)
	require.True(t, refused, "%v", err)
	assert.Equal(t, "w2", findings[len(findings)-1].Host, "it is not forgotten beside a check that failed")
}
