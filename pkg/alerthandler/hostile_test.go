package alerthandler_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/job/jobtest"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

const cordonOnce = `
policies: [{name: broken, alerts: {alertname: GpuXidFatal}, steps: [{do: cordon}, {do: uncordon}]}]`

func xid(node string) policy.Alert {
	return alert(map[string]string{"alertname": "GpuXidFatal", "node": node, "gpu": "0"}, start)
}

// before returns a client configuration that calls do once, before the first request that selects accepts.
func (w *world) before(selects func(*http.Request, string) bool, do func() error) *rest.Config {
	var done atomic.Bool
	c := rest.CopyConfig(w.Config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil && r.Method != http.MethodGet {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				if selects(r, string(body)) && done.CompareAndSwap(false, true) {
					if err := do(); err != nil {
						return nil, err
					}
				}
			}
			return next.RoundTrip(r)
		})
	})
	return c
}

func (w *world) cordonByHand(ctx context.Context, node string) error {
	_, err := w.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	return err
}

// An Action for the next step that can't be created at once is created later.
func TestTheNextStepIsMadeLater(t *testing.T) {
	w := open(t)
	w.node("n1")
	c := w.before(func(r *http.Request, body string) bool {
		return r.Method == http.MethodPost && strings.Contains(body, `-2"`)
	}, func() error { return errDead })
	h, _ := w.handler(config(t, cordonOnce), c)
	w.send(h, xid("n1"))
	w.settled(2)
}

// A person cordons a machine just before a policy does. The policy doesn't take over or end that cordon.
func TestAPersonIsFaster(t *testing.T) {
	w := open(t)
	w.node("n1")
	c := w.before(func(r *http.Request, _ string) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/nodes/n1")
	}, func() error { return w.cordonByHand(t.Context(), "n1") })
	h, _ := w.handler(config(t, cordonOnce), c)
	w.send(h, xid("n1"))
	w.settled(2)
	n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, n.Spec.Unschedulable)
	require.Empty(t, n.Annotations[v1.MarkAnnotation])
}

// A person has ended a cordon of a policy. The old mark doesn't make the policy the owner of the next cordon.
func TestAnOldMarkIsRemoved(t *testing.T) {
	w := open(t)
	w.node("n1")
	_, err := w.Client.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{\"by\":{\"kind\":\"policy\",\"name\":\"broken\"}}"}}}`,
		v1.MarkAnnotation), metav1.PatchOptions{})
	require.NoError(t, err)
	w.handler(config(t, cordonOnce), w.Config)
	require.Eventually(t, func() bool {
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err == nil && n.Annotations[v1.MarkAnnotation] == ""
	}, waitFor, 20*time.Millisecond)
}

// When a machine breaks for the fourth time within a week, it stays out of service, and its mark contains the reason. If a person returns the machine
// to service, the count begins again.
func TestAMachineThatBreaksAgainAndAgain(t *testing.T) {
	w := open(t)
	w.node("n1")
	h, _ := w.handler(config(t, cordonOnce), w.Config)
	a := xid("n1")
	for i := range 4 {
		w.send(h, at(a, 10*i, 0))
		all := w.settled(2 * (i + 1))
		w.send(h, at(a, 10*i, 10*i+5))
		phases := map[v1.Phase]int{}
		for _, a := range all {
			phases[a.Status.Phase]++
		}
		require.Equal(t, i/3, phases[v1.PhaseRefused], "%v", all)
	}
	n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, n.Spec.Unschedulable)
	m := v1.ReadMark(n.Annotations)
	require.True(t, m.Stays)
	require.Contains(t, v1.Cordoned(m.By.Text(), m.Reason), "policies have returned it to service 3 times within 168h0m0s")
	w.request(func(a *v1.Action) {
		a.Spec.Do, a.Spec.Machine = v1.OperationUncordon, &v1.Machine{Name: "n1", UID: n.UID}
	})
	require.Eventually(t, func() bool {
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err == nil && !n.Spec.Unschedulable && n.Annotations[v1.MarkAnnotation] == "" && n.Annotations[v1.ReturnsAnnotation] == ""
	}, waitFor, 20*time.Millisecond)
}

// Policies don't act on machines of the control plane, or on alerts about a reset without a GPU.
func TestMachinesThatAreLeftAlone(t *testing.T) {
	w := open(t)
	w.node("n1")
	master := w.node("master")
	master.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	master.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	_, err := w.Client.CoreV1().Nodes().Update(t.Context(), master, metav1.UpdateOptions{})
	require.NoError(t, err)
	h, _ := w.handler(config(t, stopIdle), w.Config)
	w.send(h, xid("master"), alert(map[string]string{"alertname": "GpuXidFatal", "node": "n1"}, start), alert(map[string]string{"alertname": "GpuXidFatal", "node": "n1", "gpu": "5000"}, start))
	require.Empty(t, w.actions())
}

// After a dry run, the next steps are dry runs, too. If a policy now makes only dry runs, its earlier Actions also have no effect.
func TestTheConfigurationChanges(t *testing.T) {
	w := open(t)
	f := w.job("ann", "train")
	n := w.node("n1")
	now := config(t, `
policies:
  - {name: idle, alerts: {alertname: JobGpusIdle}, dryRun: true, steps: [{do: stop-job}]}
  - {name: broken, alerts: {alertname: GpuXidFatal}, steps: [{do: cordon}, {do: drain}]}`)
	made := func(name string, dry bool, change func(*v1.Action)) string {
		p := now.ByName(name)
		return w.request(func(a *v1.Action) {
			a.GenerateName, a.Name = "", p.ActionName("0123456789abcdef-1", 0)
			a.Labels = map[string]string{alerthandler.LabelPolicy: name, alerthandler.LabelIncident: "0123456789abcdef-1", alerthandler.LabelStep: "0"}
			a.Spec.By, a.Spec.DryRun = v1.Requester{Kind: v1.ByPolicy, Name: name}, dry
			change(a)
		}).Name
	}
	idle := made("idle", false, func(a *v1.Action) {
		a.Spec.Do, a.Spec.Job = v1.OperationStopJob, &v1.Job{Object: f.Name, UID: f.UID, Name: "ann/train"}
	})
	made("broken", true, func(a *v1.Action) {
		a.Spec.Do, a.Spec.Machine = v1.OperationCordon, &v1.Machine{Name: "n1", UID: n.UID}
	})
	w.handler(now, w.Config)
	all := w.settled(3)
	require.Equal(t, v1.PhaseRefused, all[idle].Status.Phase)
	require.Contains(t, all[idle].Status.Message, "dry runs only")
	require.Contains(t, all["broken-0123456789abcdef-1-2"].Status.Message, "dry run")
	require.Equal(t, jobv1.ExecutionStart, jobtest.Framework(t, w.Cluster, f.Name).Spec.ExecutionType)
}

// A policy gets more steps. It doesn't carry them out for an alert whose steps were already completed, because a person may have repaired the
// machine since.
func TestAPolicyThatGetsFurtherSteps(t *testing.T) {
	w := open(t)
	w.node("n1")
	h, end := w.handler(config(t, `
policies: [{name: broken, alerts: {alertname: GpuXidFatal}, steps: [{do: drain}]}]`), w.Config)
	w.send(h, xid("n1"))
	w.settled(1)
	end()
	h, _ = w.handler(config(t, `
policies:
  - {name: broken, alerts: {alertname: GpuXidFatal}, steps: [{do: drain}, {do: uncordon}]}
  - {name: later, alerts: {alertname: GpuXidFatal}, dryRun: true, steps: [{do: cordon}]}`), w.Config)
	w.send(h, xid("n1"))
	w.settled(2)
	require.True(t, w.nodeNow("n1").Spec.Unschedulable)
}

// clocked starts a handler whose clock the test can set ahead. touch makes the handler check its Actions again.
func (w *world) clocked(c *policy.Config) (h *alerthandler.Handler, ahead *atomic.Int64, touch func(node string)) {
	ahead = &atomic.Int64{}
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	h, err := alerthandler.New(alerthandler.Options{Config: w.Config, JobNamespace: kube.JobNamespace, Policies: c, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Now: now, Elapsed: now}) // the time passes; the clock isn't set
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = h.Run(ctx); done <- struct{}{} }()
	go func() { h.Lead(ctx); done <- struct{}{} }()
	w.t.Cleanup(func() { cancel(); <-done; <-done })
	require.Eventually(w.t, h.Synced, waitFor, 10*time.Millisecond)
	return h, ahead, func(node string) { w.node(node) }
}

// An Action that waits because of a limit begins when the limit allows the Action.
func TestTheRestWaits(t *testing.T) {
	w := open(t)
	w.job("ann", "a")
	w.job("ann", "b")
	c := config(t, stopIdle)
	c.Limits.StopsPerHour = 1
	h, ahead, touch := w.clocked(c)
	w.send(h, idle("ann", "a"), idle("ann", "b"))
	phases := func() map[v1.Phase]int {
		out := map[v1.Phase]int{}
		for _, a := range w.actions() {
			out[a.Status.Phase]++
		}
		return out
	}
	require.Eventually(t, func() bool { p := phases(); return p[v1.PhasePending] == 1 && p[v1.PhaseSucceeded] == 1 }, waitFor, 20*time.Millisecond)
	ahead.Store(int64(61 * time.Minute))
	w.send(h, idle("ann", "a"), idle("ann", "b"))
	touch("n1")
	for _, a := range w.settled(2) {
		require.Equal(t, v1.PhaseSucceeded, a.Status.Phase, a.Status.Message)
	}
}

// An alert that fires for longer than Actions are kept doesn't create a second Action.
func TestAnAlertThatFiresForWeeks(t *testing.T) {
	w := open(t)
	w.node("n1")
	h, ahead, touch := w.clocked(config(t, cordonOnce))
	w.send(h, xid("n1"))
	first := w.settled(2)
	for day := range 3 {
		ahead.Store(int64(time.Duration(day+1) * 100 * time.Hour))
		w.send(h, xid("n1"))
		touch(fmt.Sprintf("day-%d", day))
	}
	w.send(h, xid("n1"))
	for name, a := range w.settled(2) {
		require.Equal(t, first[name].UID, a.UID)
	}
}

// The Action for the next step is created even after an outage of hours, so that the machine doesn't stay cordoned without a reason.
func TestTheNextStepIsMadeAfterAnOutage(t *testing.T) {
	w := open(t)
	w.node("n1")
	var up atomic.Bool
	c := *w.Cluster
	c.Config = rest.CopyConfig(w.Config)
	c.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && !up.Load() {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				if strings.Contains(string(body), `-2"`) {
					return nil, errDead
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			return next.RoundTrip(r)
		})
	})
	behind := *w
	behind.Cluster = &c
	h, ahead, touch := behind.clocked(config(t, cordonOnce))
	w.send(h, xid("n1"))
	w.settled(1)
	ahead.Store(int64(3 * time.Hour))
	up.Store(true)
	touch("n2")
	w.settled(2)
}
