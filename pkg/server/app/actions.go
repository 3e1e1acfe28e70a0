package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// MaxActions is the maximum of the field Limit of an ActionFilter.
const MaxActions = 1000

// ActionFilter selects Actions, and limits the number of Actions on a page.
type ActionFilter struct {
	Phases       []actionsv1.Phase // none: all
	Machine, Job string            // "": all; a job is OWNER/NAME
	// Limit is the maximum number of Actions, from 1 to MaxActions. Cursor is the cursor that an earlier page returned.
	Limit  int
	Cursor string
}

func (f *ActionFilter) selects(a *actionsv1.Action) bool {
	return (len(f.Phases) == 0 || slices.Contains(f.Phases, a.Status.Phase)) &&
		(f.Machine == "" || a.Spec.Machine != nil && a.Spec.Machine.Name == f.Machine) &&
		(f.Job == "" || a.Spec.Job != nil && a.Spec.Job.Name == f.Job)
}

// actionClient is the client for Actions. The first request creates the client.
type actionClient struct {
	once    sync.Once
	objects dynamic.ResourceInterface
	err     error
}

func (d *Actions) actions() (dynamic.ResourceInterface, error) {
	c := &d.app.actions
	c.once.Do(func() {
		if c.objects != nil { // set by a test
			return
		}
		var all dynamic.Interface
		if all, c.err = dynamic.NewForConfig(d.app.Jobs.Config); c.err == nil {
			c.objects = all.Resource(actionsv1.Actions)
		}
	})
	return c.objects, c.err
}

// Actions returns the selected Actions without the results of their parts, the latest first. Only administrators may call it. next is the cursor of
// the following page, or "" after the last page.
func (d *Actions) Actions(ctx context.Context, f ActionFilter) (items []*actionsv1.Action, next string, err error) {
	if err := rules.Class("action.read", &d.caller.Subject); err != nil {
		return nil, "", err
	}
	after, err := readActionCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	selected := func(a *actionsv1.Action) bool { return f.selects(a) && (after == nil || after.compare(a) < 0) }
	if all, ok := d.app.Actions.all(); ok {
		for _, a := range all {
			if selected(a) {
				items = append(items, a)
			}
		}
		slices.SortFunc(items, latestFirst)
	} else if items, err = d.listActions(ctx, f.Limit+1, selected); err != nil {
		return nil, "", err
	}
	if len(items) > f.Limit {
		items = items[:f.Limit]
		next = actionCursor(items[f.Limit-1])
	}
	return items, next, nil
}

// listActions lists Actions page by page in the API server. It returns the latest of the selected Actions, at most the given number.
func (d *Actions) listActions(ctx context.Context, most int, selected func(*actionsv1.Action) bool) (items []*actionsv1.Action, err error) {
	objects, err := d.actions()
	if err != nil {
		return nil, err
	}
	read := func(o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		list, err := objects.List(ctx, o)
		return list, actionError("", err)
	}
	err = pages(&KubeQuery{}, read, func(list *unstructured.UnstructuredList) error {
		for i := range list.Items {
			a, err := readAction(&list.Items[i])
			if err != nil {
				return err
			}
			if selected(a) {
				items = append(items, brief(a))
			}
		}
		slices.SortFunc(items, latestFirst)
		if len(items) > most {
			items = slices.Clone(items[:most])
		}
		return nil
	})
	return items, err
}

// place is a position in the list of Actions, which is sorted by creation time and name.
type place struct {
	at   int64 // seconds
	name string
}

// compare returns a negative number if the place is before an Action, 0 if it is the place of the Action, and a positive number otherwise.
func (p *place) compare(a *actionsv1.Action) int {
	return cmp.Or(cmp.Compare(a.CreationTimestamp.Unix(), p.at), strings.Compare(p.name, a.Name))
}

func latestFirst(a, b *actionsv1.Action) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

func actionCursor(a *actionsv1.Action) string {
	return strconv.FormatInt(a.CreationTimestamp.Unix(), 10) + "." + a.Name
}

func readActionCursor(text string) (*place, error) {
	if text == "" {
		return nil, nil
	}
	at, name, found := strings.Cut(text, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil || !isObjectName(name) {
		return nil, wire.Bad("the cursor is invalid: use the one at the end of the previous page")
	}
	return &place{n, name}, nil
}

// Action returns the Action with the given name. Only administrators may call it.
func (d *Actions) Action(ctx context.Context, name string) (*actionsv1.Action, error) {
	if err := rules.Class("action.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	return d.action(ctx, name)
}

func (d *Actions) action(ctx context.Context, name string) (*actionsv1.Action, error) {
	if !isObjectName(name) {
		return nil, noAction(name)
	}
	objects, err := d.actions()
	if err != nil {
		return nil, err
	}
	return actionOf(name)(objects.Get(ctx, name, metav1.GetOptions{}))
}

// NewAction is a request for an operation. It contains the name of the target. The server adds the target's UID.
type NewAction struct {
	Operation actionsv1.Operation
	// Job is the target of OperationStopJob and OperationRequeueJob, as OWNER/NAME. Machine is the target of all other operations. OperationResetGPU
	// also requires GPU.
	Job, Machine string
	GPU          *int32
	Reason       string
	Grace        time.Duration
	// NotAfter is the time at which a request expires that hasn't begun. If NotAfter is zero, the request expires defaultValid after the end of its
	// grace period.
	NotAfter time.Time
	DryRun   bool
}

const (
	// maxGrace limits the grace period. After the grace period, a request may wait for defaultValid by default, or for a requested time of at most
	// maxValid.
	maxGrace     = 7 * 24 * time.Hour
	defaultValid = time.Hour
	maxValid     = 7 * 24 * time.Hour
	// maxActionReason limits a reason, in characters. maxCancelReason limits the reason of a cancellation. It is smaller, because the person's name
	// is added to the reason.
	maxActionReason = 500
	maxCancelReason = 200
	// mostCancelTries limits how often CancelAction repeats a cancellation after a conflict.
	mostCancelTries = 5
)

// check returns the first error in the request that doesn't depend on the cluster. It also sets the default expiry.
func (n *NewAction) check(now time.Time) error {
	switch job := n.Operation.ForJobs(); {
	case !slices.Contains(actionsv1.Operations(), n.Operation):
		return wire.Bad(fmt.Sprintf(`"operation" must be one of %s`, join(actionsv1.Operations())))
	case job && (n.Job == "" || n.Machine != "" || n.GPU != nil):
		return wire.Bad(fmt.Sprintf(`"operation": %s needs "job", and neither "machine" nor "gpu"`, n.Operation))
	case !job && (n.Machine == "" || n.Job != ""):
		return wire.Bad(fmt.Sprintf(`"operation": %s needs "machine", and not "job"`, n.Operation))
	case (n.Operation == actionsv1.OperationResetGPU) != (n.GPU != nil):
		return wire.Bad(fmt.Sprintf(`"gpu", the number of a GPU, is for %s alone, which needs it`, actionsv1.OperationResetGPU))
	case n.GPU != nil && (*n.GPU < 0 || *n.GPU > 1023):
		return wire.Bad(`"gpu" must be the number of a GPU: they are counted from 0`)
	case n.Grace < 0 || n.Grace > maxGrace:
		return wire.Bad(fmt.Sprintf(`"graceSeconds" must be from 0 to %d`, int(maxGrace.Seconds())))
	}
	if err := checkActionReason(n.Reason, maxActionReason); err != nil {
		return err
	}
	begins := now.Add(n.Grace)
	if n.NotAfter.IsZero() {
		n.NotAfter = begins.Add(defaultValid)
	}
	if !n.NotAfter.After(begins) || n.NotAfter.After(begins.Add(maxValid)) {
		return wire.Bad(`"notAfter" must be after the end of the grace, by 7 days at most`)
	}
	return nil
}

func checkActionReason(text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return wire.Bad(`"reason" is required: people who are affected read it`)
	case len([]rune(text)) > most:
		return wire.Bad(fmt.Sprintf(`"reason" may have %d characters`, most))
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return wire.Bad(`"reason" must be one line`)
	}
	return nil
}

func join[T ~string](values []T) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return strings.Join(out, ", ")
}

// RequestAction creates an Action. Before pai-alert-handler carries out the Action, it checks again that the caller is an administrator.
func (d *Actions) RequestAction(ctx context.Context, n NewAction) (made *actionsv1.Action, err error) {
	name := strings.ToLower(string(n.Operation) + "-" + rand.Text()[:10])
	detail := map[string]string{"operation": wire.Shown(string(n.Operation)), "reason": wire.Shown(n.Reason)}
	for key, value := range map[string]string{"job": n.Job, "machine": n.Machine} {
		if value != "" {
			detail[key] = wire.Shown(value)
		}
	}
	if n.DryRun {
		detail["dryRun"] = "true"
	}
	owner, _, _ := strings.Cut(n.Job, "/")
	thing := rules.Object{Kind: rules.KindAction, Name: wire.Shown(name), Owner: wire.Shown(owner)}
	err = d.did(ctx, "action.create", thing, detail, func(ctx context.Context) error {
		if err := rules.Class("action.create", &d.caller.Subject); err != nil {
			return err
		}
		if err := n.check(d.app.now()); err != nil {
			return err
		}
		made, err = d.makeAction(ctx, name, &n)
		return err
	})
	return made, err
}

func (d *Actions) makeAction(ctx context.Context, name string, n *NewAction) (*actionsv1.Action, error) {
	by, err := d.requester(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := d.actions()
	if err != nil {
		return nil, err
	}
	spec := actionsv1.ActionSpec{Do: n.Operation, By: by, Reason: strings.TrimSpace(n.Reason), DryRun: n.DryRun, GraceSeconds: int64(n.Grace.Seconds()),
		NotAfter: metav1.NewTime(n.NotAfter.UTC().Truncate(time.Second))}
	if n.Job != "" {
		spec.Job, err = d.targetJob(ctx, n.Job)
	} else {
		spec.Machine, err = d.targetMachine(ctx, n.Machine, n.GPU)
	}
	if err != nil {
		return nil, err
	}
	a := &actionsv1.Action{TypeMeta: metav1.TypeMeta{APIVersion: actionsv1.GroupVersion.String(), Kind: actionsv1.Kind}, ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return nil, err
	}
	made, err := objects.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err == nil {
		d.app.Actions.put(made)
	}
	return actionOf(name)(made, err)
}

// requester returns the caller in the form that an Action stores. The form contains the UID, so that a later person with the same name isn't mistaken
// for the requester.
func (d *Actions) requester(ctx context.Context) (actionsv1.Requester, error) {
	const most = 253
	switch {
	case d.caller.operator != nil:
		name := d.caller.operator(ctx)
		return actionsv1.Requester{Kind: actionsv1.ByOperator, Name: string([]rune(name)[:min(most, len([]rune(name)))])}, nil
	case d.caller.person != nil && d.caller.person.UID != "":
		return actionsv1.Requester{Kind: actionsv1.ByPerson, Name: d.caller.Name, UID: d.caller.person.UID}, nil
	}
	return actionsv1.Requester{}, ErrToken
}

func (d *Actions) targetJob(ctx context.Context, text string) (*actionsv1.Job, error) {
	user, name, found := strings.Cut(text, "/")
	if !found || user == "" || name == "" {
		return nil, wire.Bad(`"job" must be a job with its owner: OWNER/NAME`)
	}
	j, err := d.Job(ctx, "action.create", user, name)
	if err != nil {
		return nil, err
	}
	if !j.job.Live || j.job.State.Done() {
		return nil, &wire.Error{Status: http.StatusConflict, Code: codeConflictJob, Message: fmt.Sprintf("Job %s~%s has ended.", wire.Shown(user), wire.Shown(name))}
	}
	return &actionsv1.Job{Object: j.job.Object, UID: types.UID(j.job.UID), Name: j.thing.Owner + "/" + j.thing.Name, VirtualCluster: j.thing.VC}, nil
}

func (d *Actions) targetMachine(ctx context.Context, name string, gpu *int32) (*actionsv1.Machine, error) {
	none := &wire.Error{Status: http.StatusNotFound, Code: codeNoMachine, Message: fmt.Sprintf("Machine %s is not found.", wire.Shown(name)), Remedy: "see the names of machines with: paictl status"}
	if !isObjectName(name) {
		return nil, none
	}
	node, err := d.app.Jobs.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	return &actionsv1.Machine{Name: node.Name, UID: node.UID, GPU: gpu}, nil
}

// CancelAction cancels an Action that hasn't begun, or a drain that has begun. It doesn't change an Action that was already canceled.
func (d *Actions) CancelAction(ctx context.Context, name, reason string) (a *actionsv1.Action, err error) {
	thing := rules.Object{Kind: rules.KindAction, Name: wire.Shown(name)}
	err = d.did(ctx, "action.cancel", thing, map[string]string{"reason": wire.Shown(reason)}, func(ctx context.Context) error {
		if err := rules.Class("action.cancel", &d.caller.Subject); err != nil {
			return err
		}
		if err := checkActionReason(reason, maxCancelReason); err != nil {
			return err
		}
		for range mostCancelTries {
			if a, err = d.action(ctx, name); err != nil {
				return err
			}
			if a.Spec.Canceled != "" {
				return errNothing
			}
			if err := cancelable(a); err != nil {
				return err
			}
			// The Action may have begun in between, so the next try reads the Action again.
			if a, err = d.cancelAction(ctx, a, reason); !errors.Is(err, ErrChanged) {
				return err
			}
		}
		return err
	})
	return a, err
}

func cancelable(a *actionsv1.Action) error {
	conflict := func(message string) error {
		return &wire.Error{Status: http.StatusConflict, Code: codeConflictAction, Message: message}
	}
	switch {
	case a.Status.Phase.Final():
		return conflict(fmt.Sprintf("the action %s has ended: %s", a.Name, a.Status.Phase))
	case a.Begun() && a.Spec.Do != actionsv1.OperationDrain:
		return conflict(fmt.Sprintf("the action %s has begun; of those, only a drain can be canceled", a.Name))
	}
	return nil
}

func (d *Actions) cancelAction(ctx context.Context, a *actionsv1.Action, reason string) (*actionsv1.Action, error) {
	by, err := d.requester(ctx)
	if err != nil {
		return nil, err
	}
	const most = 300 // of the field
	text := []rune(fmt.Sprintf("%s (%s)", strings.TrimSpace(reason), by.Name))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID, "resourceVersion": a.ResourceVersion}, "spec": map[string]any{"canceled": string(text[:min(len(text), most)])}})
	if err != nil {
		return nil, err
	}
	objects, err := d.actions()
	if err != nil {
		return nil, err
	}
	made, err := objects.Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // it has changed, another one has its name, or someone else has canceled it
		return nil, ErrChanged
	}
	if err == nil {
		d.app.Actions.put(made)
	}
	return actionOf(a.Name)(made, err)
}

// isObjectName reports whether a text is a valid name of a cluster-scoped object.
func isObjectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func noAction(name string) error {
	return &wire.Error{Status: http.StatusNotFound, Code: codeNoAction, Message: fmt.Sprintf("Action %s is not found.", wire.Shown(name)), Remedy: "see the names of actions with: paictl action list"}
}

// actionError converts an error of the API server about an Action to an error for the caller.
func actionError(name string, err error) error {
	switch {
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource"):
		return &wire.Error{Status: http.StatusConflict, Code: codeNoHandler, Message: "the cluster doesn't have the service alert-handler, which carries out actions",
			Remedy: "an operator starts it: paictl service start -n alert-handler"}
	case apierrors.IsNotFound(err):
		return noAction(name)
	}
	return err
}

// actionOf returns a function that converts the API server's response to an Action or an error.
func actionOf(name string) func(*unstructured.Unstructured, error) (*actionsv1.Action, error) {
	return func(u *unstructured.Unstructured, err error) (*actionsv1.Action, error) {
		if err != nil {
			return nil, actionError(name, err)
		}
		return readAction(u)
	}
}

func readAction(u *unstructured.Unstructured) (*actionsv1.Action, error) {
	a := &actionsv1.Action{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
		return nil, fmt.Errorf("read the action %s: %w", u.GetName(), err)
	}
	return a, nil
}
