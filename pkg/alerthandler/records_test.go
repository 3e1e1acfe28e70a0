package alerthandler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/audit"
)

// shelf stores records, and sends each batch to a channel.
type shelf struct{ got chan []audit.Record }

func (s *shelf) SaveAudit(_ context.Context, records []audit.Record) error {
	s.got <- records
	return nil
}

// Each effect of the handler is in the audit log with the Action's name and requester. It is recorded once, and again with the same ID after a
// restart. Dry runs and requests without an effect aren't recorded.
func TestEffectsAreInTheAudit(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := metav1.NewTime(now.Add(-time.Minute))
	action := func(uid string, phase v1.Phase, change ...func(*v1.Action)) *v1.Action {
		a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "idle-" + uid, UID: "9d3f0a52-6f1c-4b1e-9b3e-0000000000"}, Spec: v1.ActionSpec{
			Do: v1.OperationStopJob, Job: &v1.Job{Name: "ann/train", VirtualCluster: "vision"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "idle"}, Reason: "its GPUs are idle"},
			Status: v1.ActionStatus{Phase: phase, Message: "a result", StartTime: &at, EndTime: &at}}
		for _, c := range change {
			c(a)
		}
		return a
	}
	person := func(a *v1.Action) {
		a.UID, a.Spec.Do, a.Spec.Job, a.Spec.Machine = "p", v1.OperationDrain, nil, &v1.Machine{Name: "n1"}
		a.Spec.By = v1.Requester{Kind: v1.ByPerson, Name: "root", UID: "u1"}
	}
	want := audit.Record{ID: "action-9d3f0a52-6f1c-4b1e-9b3e-0000000000", Time: at.Time, Actor: "policy idle", Verb: "stop-job", Kind: "action", Object: "idle-a", Owner: "ann", VC: "vision",
		Outcome: audit.Done, Detail: map[string]string{"target": "ann/train", "reason": "its GPUs are idle", "result": "a result", "began": "2026-11-30T11:59:00Z"}}
	r, ok := recordOf(action("a", v1.PhaseSucceeded))
	require.True(t, ok)
	require.Equal(t, want, r)
	r, ok = recordOf(action("b", v1.PhaseFailed, person))
	require.True(t, ok)
	require.Equal(t, audit.Record{ID: "action-p", Time: at.Time, Actor: "root", ActorUID: "u1", Verb: "drain", Kind: "action", Object: "idle-b", Outcome: audit.Failed, Reason: "a result",
		Detail: map[string]string{"target": "n1", "reason": "its GPUs are idle", "began": "2026-11-30T11:59:00Z"}}, r)
	notBegun := func(a *v1.Action) { a.Status.StartTime = nil }
	r, ok = recordOf(action("c", v1.PhaseRefused, notBegun))
	require.True(t, ok)
	require.Equal(t, audit.Refused, r.Outcome)
	r, ok = recordOf(action("e", v1.PhaseExpired, notBegun))
	require.True(t, ok)
	require.Equal(t, audit.Refused, r.Outcome)
	for name, a := range map[string]*v1.Action{
		"a dry run": action("d", v1.PhaseSucceeded, func(a *v1.Action) { a.Spec.DryRun = true }),
		"canceled":  action("f", v1.PhaseCanceled, notBegun), "reached already": action("g", v1.PhaseSucceeded, notBegun), "acting": action("h", v1.PhaseActing),
	} {
		_, ok := recordOf(a)
		require.False(t, ok, name)
	}

	to, lines := &shelf{got: make(chan []audit.Record, 10)}, &bytes.Buffer{}
	h := &Handler{o: Options{Log: slog.New(slog.DiscardHandler)}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 { // the second one is another handler
		kept := h.newRecords(to, lines)
		go func() { _ = kept.sink.Run(ctx) }()
		for range 3 {
			kept.write(ctx, []*v1.Action{action("a", v1.PhaseSucceeded)}, now)
		}
		kept.write(ctx, []*v1.Action{action("a", v1.PhaseSucceeded), action("b", v1.PhaseFailed, person)}, now.Add(25*time.Hour))
		require.Equal(t, []audit.Record{want}, <-to.got)
	}
	require.Equal(t, 2, strings.Count(lines.String(), "\n"))
	require.Nil(t, h.newRecords(nil, lines))
	(*records)(nil).write(ctx, nil, now)
}
