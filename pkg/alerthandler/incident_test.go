package alerthandler_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/job/jobtest"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

const graceOfAnHour = `
policies: [{name: idle, alerts: {alertname: JobGpusIdle}, steps: [{do: stop-job, grace: 1h}]}]`

// at returns an alert as in Alertmanager's messages. starts and ends are minutes after start. ends is 0 if the alert still fires.
func at(a policy.Alert, starts, ends int) policy.Alert {
	a.StartsAt = start.Add(time.Duration(starts) * time.Minute)
	if ends > 0 {
		a.Status, a.EndsAt = "resolved", start.Add(time.Duration(ends)*time.Minute)
	}
	return a
}

// phases counts the Actions by phase.
func (w *world) phases() map[v1.Phase]int {
	out := map[v1.Phase]int{}
	for _, a := range w.actions() {
		out[a.Status.Phase]++
	}
	return out
}

// unheard waits until the only Action waits because its alert wasn't repeated. The Action keeps its phase, and still counts toward the limits.
func (w *world) unheard(why string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		waits := 0
		for _, a := range w.actions() {
			if a.Status.Phase == v1.PhaseNoticed && strings.Contains(a.Status.Message, "Alertmanager hasn't repeated the alert since") {
				waits++
			}
		}
		return waits == 1
	}, waitFor, 10*time.Millisecond, why)
}

func (w *world) reaches(want map[v1.Phase]int, why string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		got := w.phases()
		for phase, n := range want {
			if got[phase] != n {
				return false
			}
		}
		return len(got) == len(want)
	}, waitFor, 20*time.Millisecond, "%s: %v", why, w.actions())
}

// Prometheus restarts, another Prometheus reports the same alert, and messages are repeated and arrive late. One incident still creates only one
// Action. When the alert fires again after its end, it creates another Action.
func TestOneActionForEachIncident(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	h, _ := w.handler(config(t, graceOfAnHour), w.Config)
	a := idle("ann", "train")
	w.send(h, at(a, 0, 0))
	w.send(h, at(a, 0, 0), at(a, 7, 0), at(a, 3, 0))
	w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "another start is the same incident")
	w.send(h, at(a, 0, 5))
	w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "an end before the latest start is that of an earlier incident")
	w.send(h, at(a, 0, 8))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1}, "it has ended")
	w.send(h, at(a, 7, 0))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1}, "a message that comes after the end is late")
	w.send(h, at(a, 9, 0), at(a, 0, 8))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1, v1.PhaseNoticed: 1}, "it fires again, and its former end comes again")
	w.send(h, at(a, 9, 10))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 2}, "it has ended again")
}

// Two handlers act at the same time, because one doesn't know yet that the other one leads. Both get each message, and no step is done twice.
func TestTwoHandlersThatBothLead(t *testing.T) {
	w := open(t)
	var resets atomic.Int64
	w.machinesWork(&resets)
	for i := range 20 {
		w.node(fmt.Sprintf("n%d", i))
	}
	f := w.job("ann", "train")
	w.pod("n3", "a")
	one, _ := w.handler(config(t, stopIdle), w.Config)
	other, _ := w.handler(config(t, stopIdle), w.Config)
	xid := alert(map[string]string{"alertname": "GpuXidFatal", "node": "n3", "gpu": "2"}, start)
	for range 2 {
		w.send(one, idle("ann", "train"), xid)
		w.send(other, xid, idle("ann", "train"))
	}
	for _, a := range w.settled(4) {
		require.Equal(t, v1.PhaseSucceeded, a.Status.Phase, "%s: %s", a.Name, a.Status.Message)
	}
	require.Equal(t, int64(1), resets.Load())
	require.Equal(t, jobv1.ExecutionStop, jobtest.Framework(t, w.Cluster, f.Name).Spec.ExecutionType)
	n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n3", metav1.GetOptions{})
	require.NoError(t, err)
	require.False(t, n.Spec.Unschedulable)
	require.Empty(t, n.Annotations[v1.MarkAnnotation])
}

// The handler is killed at any request while an alert fires, ends and fires again. The next handler completes the work, because Alertmanager sends
// messages again that weren't accepted.
func TestKilledBetweenTheMessages(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	a := idle("ann", "train")
	for point, more := 0, true; more; point++ {
		for _, answered := range []bool{true, false} {
			require.NoError(t, w.objects.Resource(v1.Actions).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			killed := &mortal{answered: answered}
			killed.left.Store(int64(point))
			c := rest.CopyConfig(w.Config)
			c.Wrap(killed.wrap)
			h, end := w.handler(config(t, graceOfAnHour), c)
			revived := false
			for _, m := range []policy.Alert{at(a, 0, 0), at(a, 0, 5), at(a, 6, 0), at(a, 6, 0)} {
				require.Eventually(t, func() bool { return post(t, h, m) == http.StatusNoContent || killed.dead.Load() && !revived }, waitFor, 10*time.Millisecond)
				if killed.dead.Load() && !revived {
					revived = true
					end()
					h, end = w.handler(config(t, graceOfAnHour), w.Config)
					w.send(h, m)
				}
			}
			more = revived
			if !revived {
				require.Eventually(t, func() bool {
					return killed.dead.Load() || w.phases()[v1.PhaseNoticed] == 1 && w.phases()[v1.PhaseCanceled] == 1
				}, waitFor, 20*time.Millisecond)
				if more = killed.dead.Load(); more {
					end()
					_, end = w.handler(config(t, graceOfAnHour), w.Config)
				}
			}
			w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1, v1.PhaseNoticed: 1}, "killed")
			for name, a := range w.actions() {
				require.Equal(t, strings.HasSuffix(name, "-2-1"), a.Status.Phase == v1.PhaseNoticed, "point %d: %s is %s", point, name, a.Status.Phase)
			}
			end()
		}
	}
}

// The message that an alert has ended arrives before the message that the alert fires.
func TestTheEndComesFirst(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	h, _ := w.handler(config(t, graceOfAnHour), w.Config)
	a := idle("ann", "train")
	w.send(h, at(a, 0, 5))
	w.send(h, at(a, 0, 0))
	require.Empty(t, w.actions())
	w.send(h, at(a, 6, 0))
	w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "it fires again")
}

// A replica whose watch doesn't contain the Action yet receives a message that the alert has ended or fires again.
func TestAReplicaThatIsBehind(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	h, _ := w.handler(config(t, graceOfAnHour), w.Config)
	behind := w.blind(config(t, graceOfAnHour))
	a := idle("ann", "train")
	w.send(h, at(a, 0, 0))
	w.send(behind, at(a, 0, 5))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1}, "the one that is behind has canceled it")
	w.send(h, at(a, 6, 0))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1, v1.PhaseNoticed: 1}, "the second incident")
	w.send(behind, at(a, 6, 0), at(a, 9, 0))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 1, v1.PhaseNoticed: 1}, "both know the second incident")
	w.send(behind, at(a, 6, 10))
	w.reaches(map[v1.Phase]int{v1.PhaseCanceled: 2}, "it has ended again")
}

// blind starts a replica that doesn't lead and whose watch contains no Actions.
func (w *world) blind(c *policy.Config) *alerthandler.Handler {
	w.t.Helper()
	var listed atomic.Bool
	deaf := rest.CopyConfig(w.Config)
	deaf.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/actions") && (r.URL.Query().Get("watch") != "" || listed.Swap(true)) {
				return nil, errDead
			}
			return next.RoundTrip(r)
		})
	})
	h, err := alerthandler.New(alerthandler.Options{Config: deaf, JobNamespace: kube.JobNamespace, Policies: c, Log: slog.New(slog.DiscardHandler)})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
	require.Eventually(w.t, h.Synced, waitFor, 10*time.Millisecond)
	return h
}

// If the message about the end of an alert is lost, nothing happens at the end of the grace period. If the alert fires again, a new incident begins.
func TestALostEnd(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	h, ahead, touch := w.clocked(config(t, `
policies: [{name: idle, alerts: {alertname: JobGpusIdle}, steps: [{do: stop-job, grace: 3h}]}]`))
	a := idle("ann", "train")
	a.StartsAt = time.Now()
	w.send(h, a)
	w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "the notice")
	ahead.Store(int64(3*time.Hour + time.Minute))
	touch("n1")
	w.unheard("the alert wasn't repeated")
	w.send(h, a)
	w.settled(1)
	ahead.Store(int64(9 * time.Hour))
	w.job("ann", "other")
	b := idle("ann", "other")
	w.send(h, b)
	w.reaches(map[v1.Phase]int{v1.PhaseSucceeded: 1, v1.PhaseNoticed: 1}, "another alert")
	ahead.Store(int64(11*time.Hour + 30*time.Minute))
	b.StartsAt = time.Now().Add(11 * time.Hour)
	w.send(h, b)
	w.reaches(map[v1.Phase]int{v1.PhaseSucceeded: 1, v1.PhaseCanceled: 1, v1.PhaseNoticed: 1}, "its end was lost")
}

// A new job with the name of an earlier job is a different target. An alert that began before the new job was submitted is about the earlier job.
func TestAnotherJobOfTheName(t *testing.T) {
	w := open(t)
	first := w.job("ann", "train")
	h, _ := w.handler(config(t, stopIdle+`  - {name: seen, alerts: {alertname: Seen}, dryRun: true, steps: [{do: stop-job}]}
`), w.Config)
	stale := idle("ann", "train")
	w.send(h, stale)
	w.settled(1)
	require.NoError(t, w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	second := w.job("ann", "train")
	// Until Alertmanager's next message, the alert has the start time of the first job.
	stale.StartsAt = first.CreationTimestamp.Time
	if !stale.StartsAt.Before(second.CreationTimestamp.Time) {
		stale.StartsAt = second.CreationTimestamp.Add(-time.Second)
	}
	seen := alert(map[string]string{"alertname": "Seen", "user": "ann", "job_name": "train"}, start)
	require.Eventually(t, func() bool {
		if post(t, h, seen) != http.StatusNoContent {
			return false
		}
		for _, a := range w.actions() {
			if a.Spec.By.Name == "seen" && a.Spec.Job.UID == second.UID {
				return true
			}
		}
		return false
	}, waitFor, 20*time.Millisecond, "the handler knows the second job")
	before := len(w.actions())
	w.send(h, stale)
	require.Len(t, w.actions(), before, "it is about the first job")
	w.send(h, idle("ann", "train"))
	for name, a := range w.settled(before + 1) {
		if a.Spec.By.Name == "idle" && strings.HasSuffix(name, "-2-1") {
			require.Equal(t, second.UID, a.Spec.Job.UID)
			return
		}
	}
	t.Fatal("the alert about the second job has no Action")
}

// Too many Actions for another job are open. The end of an alert still cancels its Action. Alertmanager must send the rest of the message again.
func TestTheEndOfAnAlertIsTakenFromAnyMessage(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	f := w.job("ann", "other")
	h, _ := w.handler(config(t, graceOfAnHour), w.Config)
	w.send(h, idle("ann", "train"))
	w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "the notice")
	for i := range 1050 { // the watch may be behind
		w.request(func(a *v1.Action) {
			a.GenerateName, a.Name = "", fmt.Sprintf("idle-%d", i)
			a.Spec.Do, a.Spec.By, a.Spec.GraceSeconds = v1.OperationStopJob, v1.Requester{Kind: v1.ByPolicy, Name: "idle"}, 3000
			a.Spec.Job = &v1.Job{Object: f.Name, UID: f.UID, Name: "ann/other", VirtualCluster: "vision"}
		})
	}
	require.Eventually(t, func() bool { return post(t, h, idle("ann", "other")) == http.StatusServiceUnavailable }, waitFor, 20*time.Millisecond)
	over := idle("ann", "train")
	over.Status = "resolved"
	require.Equal(t, http.StatusServiceUnavailable, post(t, h, idle("ann", "other"), over))
	for _, a := range w.actions() {
		require.Equal(t, a.Spec.Job.Name == "ann/train", a.Spec.Canceled != "", a.Name)
	}
}

// A policy makes dry runs or is missing while its alert fires or ends. When the policy acts again, the alert begins a new incident.
func TestAPolicyThatActsAgain(t *testing.T) {
	const acts, dry, missing = graceOfAnHour, `
policies: [{name: idle, alerts: {alertname: JobGpusIdle}, dryRun: true, steps: [{do: stop-job, grace: 1h}]}]`, `
policies: [{name: other, alerts: {alertname: JobGpusIdle}, dryRun: true, steps: [{do: stop-job, grace: 1h}]}]`
	for name, c := range map[string]struct {
		between string
		sends   func(fires policy.Alert) []policy.Alert
		starts  int
	}{
		"it fires all the time":            {dry, func(a policy.Alert) []policy.Alert { return []policy.Alert{at(a, 0, 0)} }, 0},
		"it ends during dry runs":          {dry, func(a policy.Alert) []policy.Alert { return []policy.Alert{at(a, 0, 0), at(a, 0, 5)} }, 10},
		"no message comes during dry runs": {dry, func(policy.Alert) []policy.Alert { return nil }, 0},
		"its policy is missing":            {missing, func(a policy.Alert) []policy.Alert { return []policy.Alert{at(a, 0, 5)} }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.job("ann", "train")
			a := idle("ann", "train")
			h, end := w.handler(config(t, acts), w.Config)
			w.send(h, at(a, 0, 0))
			w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "the first incident")
			end()
			h, end = w.handler(config(t, c.between), w.Config)
			require.Eventually(t, func() bool {
				for _, a := range w.actions() {
					return a.Status.Phase == v1.PhaseRefused && a.Annotations[alerthandler.AnnotationAlertEnded] != ""
				}
				return false
			}, waitFor, 20*time.Millisecond, "the incident is over")
			if messages := c.sends(a); messages != nil {
				w.send(h, messages...)
			}
			end()
			h, _ = w.handler(config(t, acts), w.Config)
			w.send(h, at(a, c.starts, 0))
			require.Eventually(t, func() bool { return w.phases()[v1.PhaseNoticed] == 1 }, waitFor, 20*time.Millisecond, "it acts again")
		})
	}
}

// A silence stops the messages about an alert. The job isn't stopped at the end of the grace period. It is stopped after the silence if the alert
// still fires.
func TestASilenceHolds(t *testing.T) {
	w := open(t)
	w.job("ann", "train")
	h, ahead, touch := w.clocked(config(t, graceOfAnHour))
	a := idle("ann", "train")
	w.send(h, a)
	w.reaches(map[v1.Phase]int{v1.PhaseNoticed: 1}, "the notice")
	ahead.Store(int64(40 * time.Minute))
	w.send(h, a)
	ahead.Store(int64(66 * time.Minute))
	touch("n1")
	w.unheard("the alert is silenced")
	w.send(h, a)
	w.settled(1)
	w.reaches(map[v1.Phase]int{v1.PhaseSucceeded: 1}, "the silence is over")
}
