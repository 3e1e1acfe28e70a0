package alerthandler

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// ofActions returns a handler that can create Actions. Its clock shows now.
func ofActions(now time.Time) *Handler {
	h := ofNodes(fake.NewClientset())
	h.metrics = newMetrics()
	h.o.Now = func() time.Time { return now }
	h.objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1.Actions: "ActionList"})
	h.actions = watch.New(watch.Options[*unstructured.Unstructured, *v1.Action]{Name: "actions", Keep: keepAction})
	return h
}

// The first step of a policy has drained a machine, but the next steps can't follow. The handler creates an Action that never begins. Its message
// explains why the machine stays cordoned, and how to return the machine to service.
func TestAMachineWhosePolicyEndsInBetween(t *testing.T) {
	ended := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	broken := policy.Policy{Name: "broken", Steps: []policy.Step{{Do: v1.OperationDrain}, {Do: v1.OperationRestartMachine}, {Do: v1.OperationUncordon}}}
	dry := broken
	dry.DryRun = true
	const stays = "; node3 stays cordoned: return it to service by paictl node uncordon node3 --reason TEXT"
	cordoned := func(*corev1.Node) {}
	for _, c := range []struct {
		name     string
		policies []policy.Policy
		after    time.Duration
		node     func(*corev1.Node)
		do       v1.Operation
		phase    v1.Phase
		message  string
	}{
		{"it continues", []policy.Policy{broken}, time.Minute, cordoned, v1.OperationRestartMachine, v1.PhaseRefused, "restarts of machines are off: set restartMachines in the sections alert-handler and agent"},
		{"the policy is removed", nil, time.Minute, cordoned, v1.OperationUncordon, v1.PhaseRefused, "the configuration has no policy broken" + stays},
		{"the policy makes dry runs", []policy.Policy{dry}, time.Minute, cordoned, v1.OperationRestartMachine, v1.PhaseRefused, "the policy broken makes dry runs only now" + stays},
		{"no handler ran for a day", []policy.Policy{broken}, 24 * time.Hour, cordoned, v1.OperationRestartMachine, v1.PhaseExpired, "it wasn't begun until 2026-11-30T21:00:00Z, when it expired" + stays},
		{"it is too long ago", nil, 200 * time.Hour, cordoned, "", "", ""},
		{"a person has returned it", nil, time.Minute, func(n *corev1.Node) { n.Spec.Unschedulable = false }, "", "", ""},
		{"a person has taken it over", nil, time.Minute, func(n *corev1.Node) { n.Annotations = nil }, "", "", ""},
		{"it was cordoned again for the alert since", nil, time.Minute, func(n *corev1.Node) {
			n.Annotations[v1.MarkAnnotation] = `{"action":"broken-a-2-1","by":{"kind":"policy","name":"broken"},"at":"2026-11-30T09:00:30Z"}`
		}, "", "", ""},
		{"no handler ran for a day, and the clock was behind when the step ended", []policy.Policy{broken}, 24 * time.Hour, func(n *corev1.Node) {
			n.Annotations[v1.MarkAnnotation] = `{"action":"broken-a-1-1","by":{"kind":"policy","name":"broken"},"at":"2026-11-30T09:00:30Z"}`
		}, v1.OperationRestartMachine, v1.PhaseExpired, "it wasn't begun until 2026-11-30T21:00:00Z, when it expired" + stays},
		{"another machine has the name", nil, time.Minute, func(n *corev1.Node) { n.UID = "n4" }, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := ended.Add(c.after)
			h := ofActions(now)
			h.o.Policies = &policy.Config{Policies: c.policies, Keep: policy.Duration(168 * time.Hour)}
			mark, err := json.Marshal(v1.Mark{Action: "broken-a-1-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}})
			require.NoError(t, err)
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", Annotations: map[string]string{v1.MarkAnnotation: string(mark)}}, Spec: corev1.NodeSpec{Unschedulable: true}}
			c.node(n)
			require.NoError(t, h.nodes.Add(n))
			at := metav1.NewTime(ended)
			a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "broken-a-1-1", Labels: map[string]string{LabelPolicy: "broken", LabelIncident: "a-1", LabelStep: "0"}},
				Spec:   v1.ActionSpec{Do: v1.OperationDrain, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}, Reason: "XID 79"},
				Status: v1.ActionStatus{Phase: v1.PhaseSucceeded, EndTime: &at}}
			if strings.Contains(c.name, "the clock was behind") {
				began := metav1.NewTime(ended.Add(time.Minute))
				a.Status.StartTime = &began
			}
			for range 2 {
				require.NoError(t, h.follow(t.Context(), a, now))
			}
			list, err := h.objects.Resource(v1.Actions).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			if c.do == "" {
				require.Empty(t, list.Items)
				return
			}
			require.Len(t, list.Items, 1)
			next, err := keepAction(&list.Items[0])
			require.NoError(t, err)
			require.Equal(t, "broken-a-1-2", next.Name)
			require.Equal(t, c.do, next.Spec.Do)
			f, err := h.facts(t.Context(), next, nil, now)
			require.NoError(t, err)
			d := step.Decide(next, f, now)
			require.Equal(t, c.phase, d.Status.Phase)
			require.Equal(t, c.message, d.Status.Message)

			h.o.Policies.Policies = []policy.Policy{broken}
			f, err = h.facts(t.Context(), next, nil, now)
			require.NoError(t, err)
			require.Empty(t, step.Decide(next, f, now).Effect, "it doesn't begin if the policy returns")
		})
	}
}

// After a failed reset, the policy restarts the machine. After a successful one, it leaves the restart out.
func TestAStepFollowsAFailure(t *testing.T) {
	ended := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	repairs := policy.Policy{Name: "broken", Steps: []policy.Step{{Do: v1.OperationDrain}, {Do: v1.OperationResetGPU}, {Do: v1.OperationRestartMachine, IfFailed: true}, {Do: v1.OperationUncordon}}}
	dry := repairs
	dry.DryRun = true
	for _, c := range []struct {
		name   string
		policy *policy.Policy
		phase  v1.Phase
		after  time.Duration
		dryRun bool
		next   string
		do     v1.Operation
	}{
		{"it failed", &repairs, v1.PhaseFailed, time.Minute, false, "broken-a-1-3", v1.OperationRestartMachine},
		{"it succeeded", &repairs, v1.PhaseSucceeded, time.Minute, false, "broken-a-1-4", v1.OperationUncordon},
		{"it was a dry run", &dry, v1.PhaseSucceeded, time.Minute, true, "broken-a-1-4", v1.OperationUncordon},
		{"it was refused", &repairs, v1.PhaseRefused, time.Minute, false, "", ""},
		{"it expired", &repairs, v1.PhaseExpired, time.Minute, false, "", ""},
		{"it failed, and no handler ran for a day", &repairs, v1.PhaseFailed, 24 * time.Hour, false, "", ""},
		{"it failed, and the policy makes dry runs now", &dry, v1.PhaseFailed, time.Minute, false, "", ""},
		{"it failed, and the policy is removed", nil, v1.PhaseFailed, time.Minute, false, "", ""},
		{"it failed before the policy got the step", &repairs, v1.PhaseFailed, time.Minute, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := ended.Add(c.after)
			h := ofActions(now)
			h.o.Policies = &policy.Config{Keep: policy.Duration(168 * time.Hour)}
			if c.policy != nil {
				h.o.Policies.Policies = []policy.Policy{*c.policy}
			}
			mark, err := json.Marshal(v1.Mark{Action: "broken-a-1-1", By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}})
			require.NoError(t, err)
			require.NoError(t, h.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3", UID: "n3", Annotations: map[string]string{v1.MarkAnnotation: string(mark)}}, Spec: corev1.NodeSpec{Unschedulable: true}}))
			at := metav1.NewTime(ended)
			a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "broken-a-1-2", Labels: map[string]string{LabelPolicy: "broken", LabelIncident: "a-1", LabelStep: "1", LabelAlternative: "true"}},
				Spec:   v1.ActionSpec{Do: v1.OperationResetGPU, Machine: &v1.Machine{Name: "node3", UID: "n3"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}, DryRun: c.dryRun},
				Status: v1.ActionStatus{Phase: c.phase, EndTime: &at}}
			if strings.Contains(c.name, "before the policy got the step") {
				delete(a.Labels, LabelAlternative)
			}
			for range 2 { // also after a restart of the handler
				require.NoError(t, h.follow(t.Context(), a, now))
			}
			list, err := h.objects.Resource(v1.Actions).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			if c.next == "" {
				require.Empty(t, list.Items)
				return
			}
			require.Len(t, list.Items, 1)
			next, err := keepAction(&list.Items[0])
			require.NoError(t, err)
			require.Equal(t, c.next, next.Name)
			require.Equal(t, c.do, next.Spec.Do)
			require.Equal(t, c.dryRun, next.Spec.DryRun)
		})
	}
}
