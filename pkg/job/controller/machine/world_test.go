package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// rules are the failure rules of the tests. A pod has one container, whose exit code determines the outcome.
type rules struct{}

func (r rules) Failed(p *corev1.Pod) machine.Outcome {
	if p.Status.Reason == "Evicted" {
		return machine.Outcome{Code: -1000, Phrase: "PodEvicted", Attributes: []v1.CompletionTypeAttribute{v1.Transient}, NodeFault: true}
	}
	if p.Status.Reason == "Terminated" {
		return machine.Outcome{Code: -1007, Phrase: "PodNodeShutdown", Attributes: []v1.CompletionTypeAttribute{v1.Transient}}
	}
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return r.Code(t.ExitCode)
		}
	}
	return machine.Outcome{Code: -300, Phrase: "PodFailedWithoutFailedContainer"}
}

// Exit codes with a meaning in the tests.
const (
	exitTransient = 200
	exitConflict  = 201
	exitPermanent = 210
	exitUnknown   = 1
	exitBadNode   = 137
)

func (rules) Code(code int32) machine.Outcome {
	o := machine.Outcome{Code: code, Phrase: fmt.Sprintf("Code%d", code)}
	switch code {
	case exitTransient, -1000, -1003:
		o.Attributes = []v1.CompletionTypeAttribute{v1.Transient}
	case exitBadNode, -1001:
		o.Attributes, o.NodeFault = []v1.CompletionTypeAttribute{v1.Transient}, true
	case exitConflict:
		o.Attributes = []v1.CompletionTypeAttribute{v1.Transient, v1.Conflict}
	case exitPermanent:
		o.Attributes = []v1.CompletionTypeAttribute{v1.Permanent}
	}
	return o
}

// world simulates an API server, a kubelet, and a controller that may be killed at any point.
type world struct {
	t      testing.TB
	random *rand.Rand
	now    time.Time
	uids   int

	f         *v1.Framework
	persisted *v1.FrameworkStatus
	cm        machine.ConfigMap
	pods      map[string]*corev1.Pod
	cache     map[string]*corev1.Pod
	attempts  map[int32]bool
	tasks     map[string]bool
	ran       map[string]types.UID // identity of a task's attempt → pod that ran it
	took      map[types.UID]bool   // pods that others deleted
	// seenLast contains the last states of removed pods that the watch delivered. About half of the removed pods are missing in this map.
	seenLast map[types.UID]*corev1.Pod

	// The state of the controller's process.
	status   *v1.FrameworkStatus
	dirty    bool
	decisive bool
	view     machine.View
	cached   bool // whether the cache knows the ConfigMap

	last    machine.Result
	notes   []machine.Note
	creates int
	writes  int
	// crash is called before every write and every action, and reports whether the controller is killed there. It may be nil.
	crash func() bool
	lose  func() bool // a write that fails
	lag   bool        // the cache is late
	// rescales means that the user changes the numbers of tasks.
	rescales bool
	// forgets means that a ConfigMap with tasks is lost when the controller is killed.
	forgets bool
	invalid string
	after   machine.After
	gpus    func(*corev1.Pod) (*v1.TaskGPUs, bool)
}

// owner returns the owner reference for pods, which is either the Framework or its ConfigMap.
func (w *world) owner() metav1.OwnerReference {
	yes := true
	if w.f.OwnsPods() {
		return metav1.OwnerReference{Kind: v1.Kind, Name: w.f.Name, UID: w.f.UID, Controller: &yes}
	}
	return metav1.OwnerReference{Kind: "ConfigMap", Name: "f-attempt", UID: w.cm.UID, Controller: &yes}
}

type crashed struct{}

func newWorld(t testing.TB, roles ...v1.TaskRole) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(1, 2)), now: time.Unix(1_800_000_000, 0), pods: map[string]*corev1.Pod{},
		cache: map[string]*corev1.Pod{}, attempts: map[int32]bool{}, tasks: map[string]bool{}, ran: map[string]types.UID{}, took: map[types.UID]bool{}, seenLast: map[types.UID]*corev1.Pod{}}
	w.f = &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid", Annotations: map[string]string{v1.AnnotationRuntime: v1.RuntimeV1}},
		Spec:       v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, RetryPolicy: v1.RetryPolicy{FancyRetryPolicy: true}, TaskRoles: roles},
	}
	return w
}

// role returns a task role like those that paictl submits. The attempt ends if one task fails or all tasks succeed.
func role(name string, tasks int32) v1.TaskRole {
	limit := int64(600)
	return v1.TaskRole{Name: name, TaskNumber: tasks, Task: v1.Task{PodGracefulDeletionTimeoutSec: &limit},
		FrameworkAttemptCompletionPolicy: v1.CompletionPolicy{MinFailedTaskCount: 1, MinSucceededTaskCount: tasks}}
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

func (w *world) check(point bool) {
	if point && w.crash != nil && w.crash() {
		panic(crashed{})
	}
}

// run calls reconcile until it reports that nothing is left to do.
func (w *world) run() {
	w.t.Helper()
	for range 50 {
		if !w.reconcile() {
			return
		}
	}
	w.t.Fatalf("the controller doesn't come to rest: %+v", w.last)
}

// reconcile runs the controller once. It reports whether the controller must run again.
func (w *world) reconcile() (again bool) {
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(crashed); !ok {
				panic(e)
			}
			w.restart()
			again = true
		}
	}()
	if !w.lag {
		w.deliverAll()
	}
	if w.status == nil && w.persisted != nil {
		w.status = w.persisted.DeepCopy()
		if w.forgets {
			w.forget()
		}
	}
	pods, err := w.view.Pods(w.cachedPods(), w.status, machine.Live{
		Pod: func(name string) (*corev1.Pod, error) { return w.pods[name], nil },
		All: func() ([]*corev1.Pod, error) {
			var all []*corev1.Pod
			for _, name := range w.names() {
				all = append(all, w.pods[name])
			}
			return all, nil
		},
	}, w.now)
	require.NoError(w.t, err)
	pods.Last = map[types.UID]*corev1.Pod{}
	for uid, p := range w.seenLast {
		if have := pods.ByName[p.Name]; have == nil || have.UID != uid {
			pods.Last[uid] = p
			delete(w.seenLast, uid)
		}
	}
	cm := w.cm
	cm.Fresh = !w.cached
	status, r := machine.Step(machine.Input{
		Framework: w.f, Status: w.status, ConfigMap: cm, Pods: pods, Now: w.now, Invalid: w.invalid, After: w.after, Rules: rules{}, Random: w.random.Float64, Policy: machine.DefaultPolicy(), GPUs: w.gpus,
		Saved: machine.Saved{
			Attempt: func(a int32) bool { return w.attempts[a] },
			Task: func(role string, i, a int32) bool {
				return w.tasks[fmt.Sprint(w.status.AttemptStatus.ID, role, i, a)]
			},
		},
	})
	w.status, w.last = status, r
	w.notes = append(w.notes, r.Notes...)
	w.dirty = w.dirty || r.Changed
	w.decisive = w.decisive || r.Decisive
	if w.dirty && (w.decisive || w.random.IntN(2) == 0) {
		w.check(true)
		if w.lose != nil && w.lose() {
			return true
		}
		w.persisted, w.dirty, w.decisive = w.status.DeepCopy(), false, false
		w.writes++
		w.check(true)
	}
	w.act(r)
	return r.Changed || r.Acts() || w.dirty
}

func (w *world) act(r machine.Result) {
	if r.NewAttempt {
		w.view.Forget()
	}
	if r.ArchiveAttempt {
		w.check(true)
		w.attempts[w.status.AttemptStatus.ID] = true
	}
	for _, t := range r.ArchiveTasks {
		w.check(true)
		w.tasks[fmt.Sprint(w.status.AttemptStatus.ID, t.Role, t.Index, w.task(t.Role, t.Index).AttemptStatus.ID)] = true
	}
	if r.DeleteConfigMap != "" && w.cm.UID == r.DeleteConfigMap {
		w.check(true)
		w.cm, w.cached = machine.ConfigMap{}, true
	}
	if r.CreateConfigMap && w.cm.UID == "" {
		w.check(true)
		w.cm, w.cached = machine.ConfigMap{UID: w.uid(), Attempt: w.status.AttemptStatus.ID}, false
	}
	for _, d := range r.Delete {
		w.check(true)
		w.delete(d)
	}
	for _, t := range r.Create {
		w.check(true)
		w.create(t)
	}
	if r.Peers != nil {
		w.check(true)
		machine.Published(w.status, w.now)
		w.dirty = true
	}
}

func (w *world) delete(d machine.Deletion) {
	p := w.pods[d.Name]
	if p == nil || p.UID != d.UID {
		w.view.Deleted(d, true, w.now)
		return
	}
	if t := w.written(string(p.UID)); t != nil && t.AttemptStatus.CompletionStatus == nil {
		w.t.Errorf("%s is deleted before its outcome is written down", p.Name)
	}
	w.view.Deleted(d, false, w.now)
	if d.Force || done(p) {
		w.remove(d.Name)
		return
	}
	w.deletePod(p)
}

// written returns the task with a pod's UID in the status that was last written, or nil.
func (w *world) written(uid string) *v1.TaskStatus {
	for _, r := range w.persisted.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			if t.AttemptStatus.PodUID != nil && *t.AttemptStatus.PodUID == uid {
				return t
			}
		}
	}
	return nil
}

// begun reports whether the status that was last written contains exactly this attempt of a task.
func (w *world) begun(want *v1.TaskStatus) bool {
	if w.persisted == nil || w.persisted.AttemptStatus.ID != w.status.AttemptStatus.ID {
		return false
	}
	for _, r := range w.persisted.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			if t.InstanceUID == want.InstanceUID && t.AttemptStatus.ID == want.AttemptStatus.ID {
				return true
			}
		}
	}
	return false
}

func done(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// remove removes a pod from the API. The controller gets the pod's last state in about half of the cases.
func (w *world) remove(name string) {
	if p := w.pods[name]; p != nil && w.random.IntN(2) == 0 {
		w.seenLast[p.UID] = p
	}
	delete(w.pods, name)
}

func (w *world) deletePod(p *corev1.Pod) {
	if p.DeletionTimestamp != nil {
		return
	}
	q := p.DeepCopy()
	grace := int64(30)
	q.DeletionGracePeriodSeconds = &grace
	q.DeletionTimestamp = &metav1.Time{Time: w.now.Add(30 * time.Second)}
	w.pods[p.Name] = q
}

func (w *world) create(ref machine.Task) {
	t := w.task(ref.Role, ref.Index)
	name := t.AttemptStatus.PodName
	if p := w.pods[name]; p != nil {
		return // AlreadyExists; the cache will show it
	}
	w.creates++
	if !w.begun(t) {
		w.t.Errorf("%s is made before its attempt is written down", name)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.uid(),
		Labels: map[string]string{v1.LabelTaskRole: ref.Role, v1.LabelTaskIndex: fmt.Sprint(ref.Index)},
		Annotations: map[string]string{
			v1.AnnotationFrameworkAttempt: fmt.Sprint(w.status.AttemptStatus.ID),
			v1.AnnotationTaskAttempt:      fmt.Sprint(t.AttemptStatus.ID), machine.AnnotationTaskUID: t.InstanceUID},
		OwnerReferences: []metav1.OwnerReference{w.owner()},
	}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	w.pods[name] = p
	w.check(true) // killed before the answer arrives
	w.view.Made(p, w.now)
}

func (w *world) restart() {
	w.status, w.dirty, w.decisive, w.view, w.cached = nil, false, false, machine.View{}, true
	clear(w.seenLast)
	if !w.lag || w.random.IntN(2) == 0 {
		w.deliverAll()
	} // otherwise the API server answers the list from its own cache, which is late
}

// forget removes random tasks from the status that a new process has read, and rebuilds the status like the controller.
func (w *world) forget() {
	for _, r := range w.status.AttemptStatus.TaskRoleStatuses {
		r.TaskStatuses = slices.DeleteFunc(r.TaskStatuses, func(*v1.TaskStatus) bool { return w.random.IntN(2) == 0 })
	}
	machine.Rebuild(machine.Input{Framework: w.f, Status: w.status, Pods: machine.Pods{ByName: w.pods}, Now: w.now, Rules: rules{}})
	w.persisted = w.status.DeepCopy()
}

func (w *world) deliverAll() {
	clear(w.cache)
	for name, p := range w.pods {
		w.cache[name] = p
	}
	w.cached = true
}

func (w *world) cachedPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, name := range slices.Sorted(mapKeys(w.cache)) {
		out = append(out, w.cache[name])
	}
	return out
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (w *world) task(role string, index int32) *v1.TaskStatus {
	w.t.Helper()
	for _, r := range w.status.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			if r.Name == role && t.Index == index {
				return t
			}
		}
	}
	w.t.Fatalf("there is no task %s-%d", role, index)
	return nil
}

// identity identifies an attempt of a task, which may run only once. If tasks are removed and added again, the new tasks are different tasks,
// although they have the same numbers.
func (w *world) identity(p *corev1.Pod) string {
	uid := ""
	if w.rescales || w.forgets {
		uid = p.Annotations[machine.AnnotationTaskUID]
	}
	return strings.Join([]string{p.Name, uid, p.Annotations[v1.AnnotationFrameworkAttempt], p.Annotations[v1.AnnotationTaskAttempt]}, "/")
}

// The following functions act as the kubelet.

func (w *world) starts(name string) {
	w.t.Helper()
	p := w.pods[name]
	require.NotNil(w.t, p, name)
	p = p.DeepCopy()
	p.Spec.NodeName = "node-" + name
	p.Status.Phase = corev1.PodRunning
	p.Status.PodIP, p.Status.HostIP = "10.0.0.1", "192.168.0.1"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}}}
	w.pods[name] = p
	if before, ok := w.ran[w.identity(p)]; ok && before != p.UID && !w.took[before] {
		w.t.Errorf("task attempt %s runs twice", w.identity(p))
	}
	w.ran[w.identity(p)] = p.UID
}

func (w *world) exits(name string, code int32) {
	w.t.Helper()
	p := w.pods[name]
	require.NotNil(w.t, p, name)
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, StartedAt: metav1.NewTime(w.now), FinishedAt: metav1.NewTime(w.now)}}}}
	w.pods[name] = p
}

// reap ends pods that are being deleted, as the kubelet does.
func (w *world) reap() {
	for _, name := range w.names() {
		if p := w.pods[name]; p.DeletionTimestamp != nil {
			w.remove(name)
		}
	}
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }
