package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
)

func TestWhyAJobWaitsIsToldWhenItIsKnownAndWhenItChanges(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const image = "worker[0] can't get ubuntu:24.04: there is no such image or tag."
	r := &reasons{now: func() time.Time { return now }}
	for _, step := range []struct {
		name, state, message string
		after                time.Duration
		says                 *job.Why
		err                  error
		want                 string
	}{
		{name: "a state that is new says enough", state: "starting", says: &job.Why{State: "starting", Sentence: image}},
		{name: "one that stays is explained", state: "starting", after: 2 * time.Second, says: &job.Why{State: "starting", Sentence: image}, want: image},
		{name: "it isn't asked at each look", state: "starting", after: 2 * time.Second, says: &job.Why{State: "starting", Sentence: "other."}},
		{name: "the same reason is printed once", state: "starting", after: 3 * time.Second, says: &job.Why{State: "starting", Sentence: image}},
		{name: "what isn't known is left out", state: "starting", after: 5 * time.Second, err: errors.New("no")},
		{name: "a job that went on isn't explained", state: "starting", after: 5 * time.Second, says: &job.Why{State: "running", Sentence: "It runs."}},
		{name: "another reason is printed", state: "starting", after: 5 * time.Second, says: &job.Why{State: "starting", Sentence: "It waits for 3m10s."}, want: "It waits for 3m10s."},
		{name: "time that passes is no change", state: "starting", after: 5 * time.Second, says: &job.Why{State: "starting", Sentence: "It waits for 1h5m."}},
		{name: "the controller's words were told with the state", state: "starting", message: "exceeded quota", after: 5 * time.Second, says: &job.Why{State: "starting", Sentence: "exceeded quota."}},
		{name: "a retry says itself when it comes", state: "retry", after: 5 * time.Second},
		{name: "and is not asked about", state: "retry", after: 5 * time.Second, says: &job.Why{State: "retry", Sentence: "no."}},
	} {
		t.Run(step.name, func(t *testing.T) {
			now = now.Add(step.after)
			r.why = func(context.Context) (*job.Why, error) { return step.says, step.err }
			d := &job.Detail{Row: job.Row{Job: api.Job{State: step.state}}, Message: step.message}
			got := ""
			if w := r.of(t.Context(), d); w != nil {
				got = w.Sentence
			}
			assert.Equal(t, step.want, got)
		})
	}
}
