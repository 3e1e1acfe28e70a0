package alerthandler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
)

// recorded is the maximum age of a finished Action that the handler records. The previous leader may have stopped before it stored the record.
const recorded = 24 * time.Hour

// openAudit returns a Poster that stores records in the job controller's archive.
func openAudit(config *rest.Config, at string) (audit.Poster, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	jobs, err := job.NewAt(&kube.Cluster{Config: config, Client: core, Program: true}, job.Options{HistoryURL: at})
	if err != nil {
		return nil, err
	}
	return jobs.History, nil
}

type records struct {
	sink *audit.Sink
	done map[types.UID]bool // belongs to the goroutine that leads
}

// newRecords returns nil if to is nil.
func (h *Handler) newRecords(to audit.Poster, lines io.Writer) *records {
	if to == nil {
		return nil
	}
	wrong := func(err error) bool {
		_, wrong := errors.AsType[*job.RefusedError](err)
		return wrong
	}
	return &records{sink: audit.NewSink(audit.NewLines(lines, h.o.Log), to, wrong, h.o.Log), done: map[types.UID]bool{}}
}

// write records the Actions that have ended. After a crash it may write records again, and the archive drops records with a known ID.
func (r *records) write(ctx context.Context, all []*v1.Action, now time.Time) {
	if r == nil {
		return
	}
	done := make(map[types.UID]bool, len(all))
	for _, a := range all {
		if !a.Status.Phase.Final() {
			continue
		}
		done[a.UID] = true
		if r.done[a.UID] || a.Status.EndTime == nil || now.Sub(a.Status.EndTime.Time) > recorded {
			continue
		}
		if record, ok := recordOf(a); ok {
			r.sink.Write(ctx, record)
		}
	}
	r.done = done
}

// recordOf returns the record of an Action that had an effect, was refused, or didn't begin in time. ok is false for other Actions.
func recordOf(a *v1.Action) (r audit.Record, ok bool) {
	s := &a.Status
	r = audit.Record{ID: "action-" + string(a.UID), Actor: a.Spec.By.Text(), ActorUID: string(a.Spec.By.UID), Verb: string(a.Spec.Do), Kind: string(rules.KindAction), Object: a.Name,
		Detail: map[string]string{"target": a.Spec.Target(), "reason": policy.OneLine(a.Spec.Reason, mostSick)}}
	switch {
	case a.Spec.DryRun || s.EndTime == nil || !s.Phase.Final():
		return r, false
	case s.Phase == v1.PhaseRefused, s.Phase == v1.PhaseExpired:
		r.Outcome, r.Reason = audit.Refused, s.Message
	case !a.Begun():
		return r, false
	case s.Phase == v1.PhaseSucceeded:
		r.Outcome = audit.Done
		r.Detail["result"] = s.Message
	default:
		r.Outcome, r.Reason = audit.Failed, s.Message
	}
	r.Time = s.EndTime.Time
	if s.StartTime != nil {
		r.Detail["began"] = s.StartTime.UTC().Format(time.RFC3339)
	}
	if a.Spec.Job != nil {
		r.Owner, _, _ = strings.Cut(a.Spec.Job.Name, "/")
		r.VC = a.Spec.Job.VirtualCluster
	}
	return r, true
}
