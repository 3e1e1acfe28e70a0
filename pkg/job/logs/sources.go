// Package logs reads the logs of a job's programs. It reads from the machines while the pods exist, and later from the job controller's archive.
// In: a job, and a selection of its tasks and attempts. Out: lines, merged if there are several tasks, and followed across retries until the job
// finishes.
package logs

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// All selects every task, or the latest attempt of the job.
const All = -1

// Selection selects tasks and attempts of a job.
type Selection struct {
	Role    string // as the user spells it; empty: all
	Task    int32  // All, or an index
	Attempt int32  // the attempt of the job; All: the latest
	// Previous selects the attempt before the latest attempt of each task.
	Previous bool
	// TaskAttempt selects one attempt of each task within the job's attempt Attempt, unless it is nil.
	TaskAttempt *int32
}

// is reports whether a source is the attempt that TaskAttempt selects.
func (s *Selection) is(o *source) bool {
	return s.TaskAttempt != nil && o.attempt == s.Attempt && o.taskAttempt == *s.TaskAttempt
}

// task is one task of a job.
type task struct {
	role  string // in the Framework
	index int32
}

// source is the log for one attempt of one task.
type source struct {
	task
	name                 string // role[index], as the user spells it
	attempt, taskAttempt int32
	pod                  *corev1.Pod // nil: its log is in the archive
	node, uid            string      // the machine and the UID of its pod
}

// container returns the name of the container that wrote the log.
func (s *source) container() string {
	if s.pod == nil {
		return container // or the only one
	}
	return ContainerOf(s.pod)
}

func (s *source) key() [2]int32 { return [2]int32{s.attempt, s.taskAttempt} }

// container is the name of the container in a task's pod that runs the user's program.
const container = "app"

// ContainerOf returns the name of the container in a pod that runs the user's program. This is "app", or the first container if another program
// made the pod.
func ContainerOf(p *corev1.Pod) string {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == container {
			return container
		}
	}
	if len(p.Spec.Containers) > 0 {
		return p.Spec.Containers[0].Name
	}
	return container
}

// reader reads the logs of one job.
type reader struct {
	client *job.Client
	job    *job.Job
	roles  map[string]string // by the Framework's name: as the user spells it
	order  []string          // the Framework's names, in the order of the job file

	match    *regexp.Regexp // nil: all lines
	stream   string         // stdout or stderr; empty: both
	warn     func(error)
	reserved *reservation
	// How long the reader waits for an agent that is being replaced.
	awayFirst, awayRest, awayTold time.Duration

	mu      sync.Mutex
	without map[string]bool      // machines that have no agent
	absent  map[string]absence   // machines whose agent is unavailable
	waiting map[*pager]bool      // logs whose next page is being retried
	quiet   map[string]time.Time // machines that don't answer, and the time of the last message about it
}

// absence is a period in which an agent didn't respond.
type absence struct{ first, last time.Time }

// problem reports a missing part of a log. Several logs may call it at the same time.
func (r *reader) problem(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warn(err)
}

// silent reports whether to report now that a machine doesn't respond. This happens at most once a minute for all tasks of the machine together.
func (r *reader) silent(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if last, ok := r.quiet[node]; ok && now.Sub(last) < time.Minute {
		return false
	}
	r.quiet[node] = now
	return true
}

func (r *reader) withoutAgent(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.without[node]
}

func (r *reader) noAgent(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.without[node] = true
}

// away returns for how long the agent of a machine has not responded, counted over all tasks. So the tasks of a machine don't wait for the agent
// one after another.
func (r *reader) away(node string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.absent[node]
	if now.Sub(a.last) > r.awayFirst+time.Minute { // too long ago; one request takes up to 45 s
		a.first = now
	}
	a.last = now
	r.absent[node] = a
	return now.Sub(a.first)
}

func (r *reader) back(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.absent, node)
}

// waits records whether the request for the next page of a log is being retried.
func (r *reader) waits(p *pager, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if yes {
		r.waiting[p] = true
		return
	}
	delete(r.waiting, p)
}

// patient reports whether requests for a log are being retried because its agent is being replaced.
func (r *reader) patient() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

func newReader(c *job.Client, j *job.Job) *reader {
	r := &reader{client: c, job: j, roles: map[string]string{}, warn: func(error) {}, without: map[string]bool{},
		absent: map[string]absence{}, waiting: map[*pager]bool{}, quiet: map[string]time.Time{}, awayFirst: awayFirst, awayRest: awayRest, awayTold: awayTold}
	for _, name := range j.RoleNames() {
		object := j.RoleObject(name)
		r.roles[object] = name
		r.order = append(r.order, object)
	}
	return r
}

// check returns an error if a selection names a role or a task that the job doesn't have.
func (r *reader) check(s Selection) error {
	if s.Role != "" && r.job.RoleObject(s.Role) == "" {
		return hint.Errorf("its roles are: "+strings.Join(r.job.RoleNames(), ", "), "%s has no task role %q", r.job.Title(), s.Role)
	}
	if !r.job.Live || s.Task < 0 {
		return nil
	}
	if Tasks(r.job, s) > 0 {
		return nil
	}
	return hint.Errorf("tasks are counted from 0", "%s has no task %d", r.job.Title(), s.Task)
}

// selected reports whether a selection includes a task.
func (r *reader) selected(s Selection, t task) bool {
	return (s.Role == "" || r.job.RoleObject(s.Role) == t.role) && (s.Task < 0 || s.Task == t.index)
}

// fromPod returns the source for a pod, or nil if the pod doesn't belong to a task.
func (r *reader) fromPod(p *corev1.Pod) *source {
	index, err := strconv.ParseInt(p.Labels[v1.LabelTaskIndex], 10, 32)
	if err != nil {
		return nil
	}
	number := func(s string) int32 {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return 0 // pods of other programs don't have it: use the first attempt
		}
		return int32(n)
	}
	s := &source{task: task{p.Labels[v1.LabelTaskRole], int32(index)}, pod: p, node: p.Spec.NodeName, uid: string(p.UID),
		attempt: number(p.Annotations[v1.AnnotationFrameworkAttempt]), taskAttempt: number(p.Annotations[v1.AnnotationTaskAttempt])}
	s.name = job.TaskName(cmp.Or(r.roles[s.role], s.role), s.index)
	return s
}

// sources returns the selected logs, one for each task, in the order of the tasks.
func (r *reader) sources(ctx context.Context, sel Selection) ([]*source, error) {
	known, err := r.known(ctx, sel, func(known map[task][]*source) bool { return r.complete(sel, known) })
	if err != nil {
		return nil, err
	}
	var out []*source
	for _, list := range known {
		if s := pick(list, sel); s != nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *source) int {
		return cmp.Or(cmp.Compare(slices.Index(r.order, a.role), slices.Index(r.order, b.role)), cmp.Compare(a.index, b.index))
	})
	return out, nil
}

// known returns the logs of the selected tasks. It reads the archive only if enough returns false for the logs of the existing pods.
func (r *reader) known(ctx context.Context, sel Selection, enough func(map[task][]*source) bool) (map[task][]*source, error) {
	known := map[task][]*source{}
	pods, err := r.client.Pods(ctx, r.job)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if s := r.fromPod(&pods[i]); s != nil && r.selected(sel, s.task) {
			known[s.task] = append(known[s.task], s)
		}
	}
	if !r.job.Live || !enough(known) {
		err = r.archived(ctx, sel, known)
		if err != nil && (len(known) == 0 || sel.Attempt >= 0 || sel.Previous) {
			return nil, err
		}
	}
	return known, nil
}

// complete reports whether the existing pods have all selected logs.
func (r *reader) complete(sel Selection, known map[task][]*source) bool {
	if len(known) < Tasks(r.job, sel) || sel.Previous {
		return false
	}
	for _, list := range known {
		if sel.TaskAttempt != nil && !slices.ContainsFunc(list, sel.is) {
			return false
		}
	}
	return sel.Attempt < 0 || sel.TaskAttempt != nil && len(known) > 0
}

// archived adds the attempts in the archive that no longer have a pod.
func (r *reader) archived(ctx context.Context, sel Selection, known map[task][]*source) error {
	past, err := r.client.FromHistory(ctx, r.job)
	if apierrors.IsNotFound(err) {
		return nil // it is the first job of its name, and no attempt of it has ended
	}
	if err != nil {
		return fmt.Errorf("look for logs of earlier attempts: %w", err)
	}
	if r.job.Live && past.UID != "" && past.UID != r.job.UID {
		return nil // an earlier job of that name
	}
	for _, a := range past.Attempts {
		for i := range a.Tasks {
			t := &a.Tasks[i]
			s := &source{task: task{t.RoleObject, t.Index}, name: job.TaskName(terminal.Line(t.Role), t.Index), attempt: a.ID, taskAttempt: t.ID, node: t.Node, uid: t.PodUID}
			same := func(o *source) bool { return o.key() == s.key() }
			if r.selected(sel, s.task) && !slices.ContainsFunc(known[s.task], same) {
				known[s.task] = append(known[s.task], s)
			}
		}
	}
	return nil
}

// pick returns the latest of a task's attempts that a selection includes, or nil.
func pick(list []*source, sel Selection) *source {
	slices.SortFunc(list, func(a, b *source) int {
		return cmp.Or(cmp.Compare(b.attempt, a.attempt), cmp.Compare(b.taskAttempt, a.taskAttempt))
	})
	if sel.Attempt >= 0 {
		list = slices.DeleteFunc(list, func(s *source) bool { return s.attempt != sel.Attempt })
	}
	if sel.TaskAttempt != nil {
		list = slices.DeleteFunc(list, func(s *source) bool { return !sel.is(s) })
	}
	if sel.Previous && len(list) > 0 {
		list = list[1:]
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
