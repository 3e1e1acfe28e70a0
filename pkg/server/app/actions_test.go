package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/audit"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// records is an audit log in memory.
type records []audit.Record

func (r *records) Write(_ context.Context, one audit.Record) { *r = append(*r, one) }

// requests is a cluster with the job vic/train, the machine gpu-1 and the administrator root.
type requests struct {
	*relatives
	audit   records
	client  *fake.FakeDynamicClient
	objects dynamic.ResourceInterface
	now     time.Time
}

func newRequests(t *testing.T) *requests {
	t.Helper()
	r := &requests{relatives: newRelatives(t), now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
	_, err := r.app.Jobs.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "machine"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{actionsv1.Actions: "ActionList"})
	r.objects = r.client.Resource(actionsv1.Actions)
	r.app.Audit, r.app.Now = &r.audit, func() time.Time { return r.now }
	r.app.actions.objects = r.objects
	return r
}

// root returns the operations of an administrator.
func (r *requests) root() *Actions {
	s := rules.Subject{Name: "root", Grants: rules.Grants{Administrator: true}}
	return r.app.For(Caller{Subject: s, person: &people.Person{Name: "root", UID: "person"}}, Origin{})
}

// put stores an Action with a creation time.
func (r *requests) put(t *testing.T, name string, at time.Time, change func(*actionsv1.Action)) {
	t.Helper()
	a := &actionsv1.Action{TypeMeta: metav1.TypeMeta{APIVersion: actionsv1.GroupVersion.String(), Kind: actionsv1.Kind}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", CreationTimestamp: metav1.NewTime(at)},
		Spec: actionsv1.ActionSpec{Do: actionsv1.OperationDrain, Machine: &actionsv1.Machine{Name: "gpu-1", UID: "machine"}, By: actionsv1.Requester{Kind: actionsv1.ByPolicy, Name: "sick"}, Reason: "XID 79"}}
	change(a)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	require.NoError(t, err)
	_, err = r.objects.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func drain() NewAction {
	return NewAction{Operation: actionsv1.OperationDrain, Machine: "gpu-1", Reason: "a fan is loud"}
}

func TestARequestNamesItsTargetAsTheServerFindsIt(t *testing.T) {
	r := newRequests(t)
	n := drain()
	n.Grace = 10 * time.Minute
	a, err := r.root().RequestAction(t.Context(), n)
	require.NoError(t, err)
	assert.Regexp(t, `^drain-[a-z2-7]{10}$`, a.Name)
	assert.Equal(t, &actionsv1.Machine{Name: "gpu-1", UID: "machine"}, a.Spec.Machine)
	assert.Equal(t, actionsv1.Requester{Kind: actionsv1.ByPerson, Name: "root", UID: "person"}, a.Spec.By)
	assert.Equal(t, int64(600), a.Spec.GraceSeconds)
	assert.True(t, a.Spec.NotAfter.Equal(&metav1.Time{Time: r.now.Add(70 * time.Minute)}), a.Spec.NotAfter)
	require.Len(t, r.audit, 1)
	assert.Equal(t, audit.Done, r.audit[0].Outcome)
	assert.Equal(t, []string{"create", "action", a.Name, "root"}, []string{r.audit[0].Verb, r.audit[0].Kind, r.audit[0].Object, r.audit[0].Actor})
	assert.Equal(t, map[string]string{"operation": "drain", "machine": "gpu-1", "reason": "a fan is loud"}, r.audit[0].Detail)

	a, err = r.root().RequestAction(t.Context(), NewAction{Operation: actionsv1.OperationStopJob, Job: "vic/train", Reason: "it mines", DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, &actionsv1.Job{Object: fv1.ObjectName("vic", "train"), UID: "new", Name: "vic/train", VirtualCluster: "speech"}, a.Spec.Job)
	assert.True(t, a.Spec.DryRun)
	assert.Equal(t, "vic", r.audit[1].Owner)

	operator := r.app.For(Caller{Subject: rules.Subject{Operator: true}, operator: func(context.Context) string { return "dev" }}, Origin{})
	a, err = operator.RequestAction(t.Context(), drain())
	require.NoError(t, err)
	assert.Equal(t, actionsv1.Requester{Kind: actionsv1.ByOperator, Name: "dev"}, a.Spec.By)
}

func TestRequestsThatAreRefused(t *testing.T) {
	r := newRequests(t)
	gpu := int32(1024)
	for name, c := range map[string]struct {
		change func(*NewAction)
		code   int
		says   string
	}{
		"an unknown operation":   {func(n *NewAction) { n.Operation = "reboot" }, 400, `"operation" must be one of stop-job, requeue-job, cordon`},
		"no target":              {func(n *NewAction) { n.Machine = "" }, 400, `drain needs "machine"`},
		"two targets":            {func(n *NewAction) { n.Job = "vic/train" }, 400, `needs "machine", and not "job"`},
		"a machine to stop":      {func(n *NewAction) { n.Operation = actionsv1.OperationStopJob }, 400, `stop-job needs "job"`},
		"a machine to requeue":   {func(n *NewAction) { n.Operation = actionsv1.OperationRequeueJob }, 400, `requeue-job needs "job"`},
		"a GPU to drain":         {func(n *NewAction) { n.GPU = new(int32) }, 400, `"gpu"`},
		"no GPU to reset":        {func(n *NewAction) { n.Operation = actionsv1.OperationResetGPU }, 400, `"gpu"`},
		"a GPU that can't exist": {func(n *NewAction) { n.Operation, n.GPU = actionsv1.OperationResetGPU, &gpu }, 400, "counted from 0"},
		"no reason":              {func(n *NewAction) { n.Reason = " " }, 400, `"reason" is required`},
		"a long reason":          {func(n *NewAction) { n.Reason = strings.Repeat("ä", 501) }, 400, "500 characters"},
		"two lines":              {func(n *NewAction) { n.Reason = "a\nb" }, 400, "one line"},
		"a negative grace":       {func(n *NewAction) { n.Grace = -1 }, 400, `"graceSeconds"`},
		"a long grace":           {func(n *NewAction) { n.Grace = maxGrace + 1 }, 400, `"graceSeconds"`},
		"an end in the grace":    {func(n *NewAction) { n.Grace, n.NotAfter = time.Hour, r.now.Add(time.Hour) }, 400, `"notAfter"`},
		"a late end":             {func(n *NewAction) { n.NotAfter = r.now.Add(8 * 24 * time.Hour) }, 400, `"notAfter"`},
		"an unknown machine":     {func(n *NewAction) { n.Machine = "gpu-9" }, 404, "Machine gpu-9 is not found"},
		"no name of a machine":   {func(n *NewAction) { n.Machine = "../secrets" }, 404, "is not found"},
		"a job without an owner": {func(n *NewAction) { *n = NewAction{Operation: actionsv1.OperationStopJob, Job: "train", Reason: "x"} }, 400, "OWNER/NAME"},
		"an unknown job": {func(n *NewAction) {
			*n = NewAction{Operation: actionsv1.OperationStopJob, Job: "vic/none", Reason: "x"}
		}, 404, "vic~none is not found"},
	} {
		n := drain()
		c.change(&n)
		_, err := r.root().RequestAction(t.Context(), n)
		require.Error(t, err, name)
		e := Meaning(err)
		assert.Equal(t, c.code, e.Status, name)
		assert.Contains(t, e.Message, c.says, name)
	}
	all, err := r.objects.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, all.Items)
	for _, one := range r.audit {
		assert.NotEqual(t, audit.Done, one.Outcome)
	}
}

func TestActionsAreForAdministratorsWithTheScope(t *testing.T) {
	r := newRequests(t)
	r.put(t, "a", r.now, func(*actionsv1.Action) {})
	for name, d := range map[string]*Actions{
		"a guest":                     r.app.For(Caller{}, Origin{}),
		"a person":                    r.as("ann", "speech"),
		"an administrator's token":    r.app.For(Caller{Subject: rules.Subject{Name: "root", Grants: rules.Grants{Administrator: true}, Token: rules.Token{Application: true, Scopes: []rules.Scope{rules.ScopeRead, rules.ScopeSubmit}}}}, Origin{}),
		"a token of no administrator": r.as("ann", "speech", rules.ScopeAdmin),
	} {
		_, _, err := d.Actions(t.Context(), ActionFilter{Limit: 1})
		assert.Error(t, err, name)
		_, err = d.Action(t.Context(), "a")
		assert.Error(t, err, name)
		_, err = d.RequestAction(t.Context(), drain())
		assert.Error(t, err, name)
		_, err = d.CancelAction(t.Context(), "a", "no")
		assert.Error(t, err, name)
	}
	assert.Len(t, r.audit, 8, "requests and cancellations that were refused")
	for _, one := range r.audit {
		assert.Equal(t, audit.Refused, one.Outcome)
	}
}

func TestActionsAreListedInPagesLatestFirst(t *testing.T) {
	r := newRequests(t)
	for i := range 7 {
		r.put(t, fmt.Sprintf("a-%d", i), r.now.Add(time.Duration(i/2)*time.Second), func(a *actionsv1.Action) {
			a.Status.Results = []actionsv1.Result{{Target: "pai-jobs/x"}}
			if i%2 == 0 {
				a.Status.Phase = actionsv1.PhaseSucceeded
			}
			if i == 6 {
				a.Spec.Do, a.Spec.Machine, a.Spec.Job = actionsv1.OperationStopJob, nil, &actionsv1.Job{Name: "vic/train"}
			}
		})
	}
	list := func(f ActionFilter) (names []string) {
		t.Helper()
		for range 10 {
			items, next, err := r.root().Actions(t.Context(), f)
			require.NoError(t, err)
			require.LessOrEqual(t, len(items), f.Limit)
			for _, a := range items {
				assert.Empty(t, a.Status.Results, "a list has no results of parts")
				names = append(names, a.Name)
			}
			if f.Cursor = next; next == "" {
				return names
			}
		}
		t.Fatal("the pages don't end")
		return nil
	}
	all := []string{"a-6", "a-4", "a-5", "a-2", "a-3", "a-0", "a-1"}
	for limit := 1; limit <= 8; limit++ {
		assert.Equal(t, all, list(ActionFilter{Limit: limit}), limit)
	}
	assert.Equal(t, []string{"a-5", "a-3", "a-1"}, list(ActionFilter{Limit: 2, Phases: []actionsv1.Phase{actionsv1.PhaseNew}}))
	assert.Equal(t, []string{"a-6"}, list(ActionFilter{Limit: 2, Job: "vic/train"}))
	assert.Equal(t, all[1:], list(ActionFilter{Limit: 2, Machine: "gpu-1"}))
	assert.Empty(t, list(ActionFilter{Limit: 2, Machine: "gpu-2"}))
	for _, bad := range []string{"x", "1", "1.", "x.a", "1.A_B"} {
		_, _, err := r.root().Actions(t.Context(), ActionFilter{Limit: 1, Cursor: bad})
		assert.Equal(t, 400, Meaning(err).Status, bad)
	}
	one, err := r.root().Action(t.Context(), "a-0")
	require.NoError(t, err)
	assert.Len(t, one.Status.Results, 1)
}

func TestAnActionIsCanceledUntilItHasBegun(t *testing.T) {
	r := newRequests(t)
	began := metav1.NewTime(r.now)
	for name, change := range map[string]func(*actionsv1.Action){
		"new":      func(*actionsv1.Action) {},
		"draining": func(a *actionsv1.Action) { a.Status.Phase, a.Status.StartTime = actionsv1.PhaseActing, &began },
		"resetting": func(a *actionsv1.Action) {
			a.Spec.Do, a.Spec.Machine.GPU = actionsv1.OperationResetGPU, new(int32)
			a.Status.Phase, a.Status.StartTime = actionsv1.PhaseActing, &began
		},
		"ended":    func(a *actionsv1.Action) { a.Status.Phase = actionsv1.PhaseFailed },
		"canceled": func(a *actionsv1.Action) { a.Spec.Canceled = "earlier (ann)" },
	} {
		r.put(t, name, r.now, change)
	}
	for name, want := range map[string]struct {
		code int
		says string
	}{
		"new": {0, "not today (root)"}, "draining": {0, "not today (root)"}, "canceled": {0, "earlier (ann)"},
		"resetting": {409, "only a drain"}, "ended": {409, "has ended: Failed"}, "none": {404, "Action none is not found"}, "../a": {404, "is not found"},
	} {
		a, err := r.root().CancelAction(t.Context(), name, " not today ")
		if want.code == 0 {
			require.NoError(t, err, name)
			assert.Equal(t, want.says, a.Spec.Canceled, name)
			continue
		}
		require.Error(t, err, name)
		assert.Equal(t, want.code, Meaning(err).Status, name)
		assert.Contains(t, Meaning(err).Message, want.says)
	}
	assert.Len(t, r.audit, 6, "nothing was changed of the one that was canceled before")
	for reason, says := range map[string]string{"": "is required", strings.Repeat("x", 201): "200 characters"} {
		_, err := r.root().CancelAction(t.Context(), "new", reason)
		assert.ErrorContains(t, err, says)
	}
}

// The Action changes after the server has read it and before the server patches it. An Action that has begun by then isn't canceled. Another changed
// Action is canceled.
func TestAnActionThatBeginsDuringItsCancellation(t *testing.T) {
	for _, phase := range []actionsv1.Phase{actionsv1.PhaseNoticed, actionsv1.PhaseActing} {
		r := newRequests(t)
		r.put(t, "reset", r.now, func(a *actionsv1.Action) {
			a.ResourceVersion, a.Spec.Do, a.Spec.Machine.GPU = "1", actionsv1.OperationResetGPU, new(int32)
		})
		patches := 0
		r.client.PrependReactor("patch", "actions", func(p kubetesting.Action) (bool, runtime.Object, error) {
			patches++
			object, err := r.client.Tracker().Get(actionsv1.Actions, "", "reset")
			require.NoError(t, err)
			u := object.(*unstructured.Unstructured).DeepCopy()
			if patches == 1 {
				status := map[string]any{"phase": string(phase)}
				if phase == actionsv1.PhaseActing {
					status["startTime"] = "2026-01-31T12:00:00Z"
				}
				u.Object["status"] = status
				u.SetResourceVersion("2")
				require.NoError(t, r.client.Tracker().Update(actionsv1.Actions, u, ""))
			}
			var sent metav1.PartialObjectMetadata
			require.NoError(t, json.Unmarshal(p.(kubetesting.PatchAction).GetPatch(), &sent))
			if sent.ResourceVersion != "" && sent.ResourceVersion != u.GetResourceVersion() {
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "actions"}, "reset", nil)
			}
			return false, nil, nil
		})
		a, err := r.root().CancelAction(t.Context(), "reset", "not today")
		if phase == actionsv1.PhaseNoticed {
			require.NoError(t, err)
			assert.Equal(t, "not today (root)", a.Spec.Canceled)
			continue
		}
		require.Error(t, err)
		assert.Contains(t, Meaning(err).Message, "the action reset has begun")
	}
}

// A cluster without the alert handler doesn't define the kind Action.
func TestWithoutTheAlertHandlerTheAnswerNamesTheRemedy(t *testing.T) {
	r := newRequests(t)
	r.client.PrependReactor("*", "actions", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	})
	check := func(err error) {
		t.Helper()
		e := Meaning(err)
		assert.Equal(t, &wire.Error{Status: 409, Code: "NoAlertHandlerError", Message: e.Message, Remedy: "an operator starts it: paictl service start -n alert-handler"}, e)
	}
	_, _, err := r.root().Actions(t.Context(), ActionFilter{Limit: 1})
	check(err)
	_, err = r.root().Action(t.Context(), "a")
	check(err)
	_, err = r.root().RequestAction(t.Context(), drain())
	check(err)
	_, err = r.root().CancelAction(t.Context(), "a", "no")
	check(err)
}

// The server lists the Actions once, and then receives changes from a watch. The next page immediately contains Actions that the server has created.
func TestPagesNeedNoListOfAllActions(t *testing.T) {
	r := newRequests(t)
	r.put(t, "drain-1", r.now, func(a *actionsv1.Action) { a.Status.Results = []actionsv1.Result{{Target: "pai-jobs/a"}} })
	r.app.Actions = watchActions(watch.From(r.objects, metav1.ListOptions{}), slog.New(slog.DiscardHandler))
	var lists atomic.Int64
	r.client.PrependReactor("list", "actions", func(a kubetesting.Action) (bool, runtime.Object, error) {
		if a.(kubetesting.ListActionImpl).ListOptions.Limit != 1 { // the watch asks whether it is current
			lists.Add(1)
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.app.Actions.Run(ctx) }()
	require.Eventually(t, func() bool { _, ok := r.app.Actions.all(); return ok }, time.Minute, time.Millisecond)
	first := lists.Load()
	made, err := r.root().RequestAction(t.Context(), drain())
	require.NoError(t, err)
	items, next, err := r.root().Actions(t.Context(), ActionFilter{Limit: 10})
	require.NoError(t, err)
	assert.Empty(t, next)
	require.Len(t, items, 2)
	assert.Equal(t, made.Name, items[slices.IndexFunc(items, func(a *actionsv1.Action) bool { return a.Name != "drain-1" })].Name)
	items, next, err = r.root().Actions(t.Context(), ActionFilter{Limit: 1})
	require.NoError(t, err)
	require.Len(t, items, 1)
	assert.NotEmpty(t, next)
	assert.Empty(t, items[0].Status.Results)
	assert.Equal(t, first, lists.Load())
	cancel()
	require.NoError(t, <-ended)
}
