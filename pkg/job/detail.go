package job

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Detail holds everything that is known about one job.
type Detail struct {
	Row
	// Message is the controller's message, if the message says more than the state.
	Message string `json:"message,omitempty"`
	Roles   []Role `json:"roles"`
	// Tasks are the tasks of the latest attempt.
	Tasks []Task `json:"taskList"`
	// Attempts are all known attempts, latest first.
	Attempts []api.Attempt `json:"attempts"`
	// After are the jobs that must end before this job starts.
	After []v1.After `json:"after,omitempty"`
	// AvoidedNodes are the nodes that failed the job. The function Avoids reports whether new pods avoid such a node.
	AvoidedNodes []v1.AvoidedNode `json:"avoidedNodes,omitempty"`
	// ClonedFrom is the original of a cloned job. Its fields are empty if the reader may not see the original.
	ClonedFrom *v1.ClonedFrom `json:"clonedFrom,omitempty"`
	// Config is the job file with masked secrets.
	Config string `json:"config,omitempty"`
	// Note names the sources that could not be queried.
	Note string `json:"note,omitempty"`

	begun, total int // tasks; see Progress

	job *Job
	// earlier are attempts from the history: the attempts of tasks within the job's latest attempt.
	earlier []api.TaskAttempt
	pods    []corev1.Pod
	group   string // the gang that waits in the queue, or ""
	// queueErr and historyErr are the errors of the requests to the scheduler and the job controller, or nil.
	queueErr, historyErr error
}

// Role describes a task role of the job.
type Role struct {
	Name         string `json:"name"`
	Object       string `json:"object"`
	Tasks        int    `json:"tasks"`
	Image        string `json:"image,omitempty"`
	MinFailed    int    `json:"minFailed,omitempty"`
	MinSucceeded int    `json:"minSucceeded,omitempty"`

	written string // in the job file
}

// Task describes a task of the latest attempt.
type Task struct {
	api.TaskAttempt
	Phase   Phase      `json:"phase"`
	RetryAt *time.Time `json:"retryAt,omitempty"`
	IP      string     `json:"ip,omitempty"`
	// Retries is the number of attempts before this attempt.
	Retries int32 `json:"retries,omitempty"`

	// Only OpenPAI's API shows the following fields. Accountable is the number of retries that counted. Begun is when the first attempt was made, Ran
	// when the program first ran, and Ended when the last attempt ended.
	Accountable int32      `json:"-"`
	Begun       time.Time  `json:"-"`
	Ran         *time.Time `json:"-"`
	Ended       *time.Time `json:"-"`
}

// Name returns the displayed name of a task: role[index].
func (t *Task) Name() string { return TaskName(t.Role, t.Index) }

// Progress returns the number of tasks of a live job, and how many of them have begun.
func (d *Detail) Progress() (begun, total int) {
	if d.job != nil || !d.Live {
		return d.begun, d.total
	}
	for i := range d.Tasks { // it was read from JSON
		switch d.Tasks[i].Phase {
		case Running, Barrier, Succeeded, Failed:
			begun++
		}
	}
	return begun, len(d.Tasks)
}

// Code returns the exit code of a task. ok is false if the task hasn't ended.
func (t *Task) Code() (code int32, ok bool) {
	if t.Completion == nil || t.Completion.CompletionStatus == nil {
		return 0, false
	}
	return t.Completion.Code, true
}

// GPUFault returns the GPU fault that the machine reported for a failed task, or "" if it reported none.
func (t *Task) GPUFault() string {
	r, _ := exitReport(&t.TaskAttempt)
	return clip(r.GPUFault)
}

// Detail reads everything that is known about a job.
func (c *Client) Detail(ctx context.Context, j *Job) (*Detail, error) {
	if !j.Live {
		return archivedDetail(j), nil
	}
	var pods []corev1.Pod
	var queue Queue
	var past *api.JobDetail
	var pastErr, queueErr error
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		pods, err = c.Pods(ctx, j)
		return err
	})
	g.Go(func() error {
		row := api.Summary(j.framework)
		queue, queueErr = c.places(ctx, row.VirtualCluster, []*Row{{Job: row}})
		return nil
	})
	g.Go(func() error {
		past, pastErr = c.History.Job(ctx, string(j.framework.UID))
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	d := liveDetail(j, append([]corev1.Pod{}, pods...), queue) // if the scheduler doesn't answer, no job counts as queued
	d.queueErr, d.historyErr = queueErr, pastErr
	if past != nil {
		for i := range past.Attempts {
			switch a := &past.Attempts[i]; {
			case len(d.Attempts) == 0 || a.ID < d.Attempts[len(d.Attempts)-1].ID:
				d.Attempts = append(d.Attempts, *a)
			case a.ID == d.Attempts[0].ID:
				d.earlier = a.Tasks
			}
		}
	} else if d.Retries > 0 && pastErr != nil {
		d.Note = "earlier attempts are not shown: " + pastErr.Error()
	}
	return d, nil
}

func archivedDetail(j *Job) *Detail {
	a := j.archived
	d := &Detail{Row: listing.NewArchivedRow(a.Job), Config: a.Config, ClonedFrom: a.ClonedFrom, Attempts: a.Attempts, job: j, Tasks: []Task{}, Roles: []Role{}}
	if len(a.Attempts) == 0 {
		return d
	}
	for _, t := range lastTasks(a.Attempts[0].Tasks) {
		d.Tasks = append(d.Tasks, t)
		i := slices.IndexFunc(d.Roles, func(r Role) bool { return r.Object == t.RoleObject })
		if i < 0 {
			i = len(d.Roles)
			d.Roles = append(d.Roles, Role{Name: t.Role, Object: t.RoleObject})
		}
		d.Roles[i].Tasks++
	}
	j.inOrder(d.Roles)
	return d
}

// EndPhase returns the phase of a finished job or task with an exit code.
func EndPhase(code int32) Phase {
	switch code {
	case 0:
		return Succeeded
	case -210, -220, -230, -240:
		return Stopped
	}
	return Failed
}

// liveDetail makes the Detail of a live job from its Framework, its pods and the queue.
func liveDetail(j *Job, pods []corev1.Pod, queue Queue) *Detail {
	f := j.framework
	d := &Detail{Row: listing.NewRow(api.Summary(f), StateOf(f, pods, queue), true), Config: f.Annotations[v1.AnnotationConfig], job: j, pods: pods, Tasks: []Task{}}
	if q, ok := queue[f.Name]; ok {
		d.group = q.Group
	}
	byName := map[string]*corev1.Pod{}
	for i := range pods {
		byName[pods[i].Name] = &pods[i]
	}
	d.Roles = rolesOf(f)
	names := map[string]string{}
	for i := range d.Roles {
		names[d.Roles[i].Object] = d.Roles[i].Name
	}
	d.ClonedFrom = v1.ReadClonedFrom(f.Annotations[v1.AnnotationClonedFrom])
	d.After, _ = f.After() // if it can't be read, the message reports that
	if f.Status == nil {
		return d
	}
	d.total, d.begun, _ = listing.Tasks(f)
	d.Message, d.AvoidedNodes = f.Status.Message, f.Status.AvoidedNodes
	s := &f.Status.AttemptStatus
	current := api.Attempt{ID: s.ID, Started: s.StartTime.UTC(), Run: api.UTC(s.RunTime), Completed: api.UTC(s.CompletionTime), Completion: s.CompletionStatus, Tasks: []api.TaskAttempt{}}
	for _, r := range s.TaskRoleStatuses {
		name := names[r.Name]
		if name == "" {
			name = r.Name // a role that was removed
		}
		for _, t := range r.TaskStatuses {
			task := liveTask(f, t, byName[t.AttemptStatus.PodName], d.group != "")
			task.Role, task.RoleObject = name, r.Name
			d.Tasks = append(d.Tasks, task)
			current.Tasks = append(current.Tasks, task.TaskAttempt)
		}
	}
	d.Attempts = []api.Attempt{current}
	return d
}

func liveTask(f *v1.Framework, t *v1.TaskStatus, pod *corev1.Pod, queued bool) Task {
	a := &t.AttemptStatus
	task := Task{
		TaskAttempt: api.TaskAttempt{
			Index: t.Index, ID: a.ID, State: t.State, Pod: a.PodName, PodUID: text(a.PodUID), Node: text(a.PodNodeName),
			Started: a.StartTime.UTC(), Run: api.UTC(a.RunTime), Completed: api.UTC(a.CompletionTime), Completion: a.CompletionStatus,
		},
		IP: text(a.PodIP), Retries: t.RetryPolicyStatus.TotalRetriedCount, Accountable: t.RetryPolicyStatus.AccountableRetriedCount,
		Begun: t.StartTime.UTC(), Ran: api.UTC(t.RunTime), Ended: api.UTC(t.CompletionTime),
	}
	if pod != nil && task.Node == "" {
		task.Node, task.IP = pod.Spec.NodeName, pod.Status.PodIP
	}
	task.Phase = taskPhase(f, t, pod, queued)
	if task.Phase == Retry {
		at := t.TransitionTime.UTC()
		if delay := t.RetryPolicyStatus.RetryDelaySec; delay != nil {
			at = at.Add(time.Duration(*delay) * time.Second)
		}
		task.RetryAt = &at
	}
	return task
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func taskPhase(f *v1.Framework, t *v1.TaskStatus, pod *corev1.Pod, queued bool) Phase {
	switch t.State {
	case v1.Completed:
		if c := t.AttemptStatus.CompletionStatus; c != nil && c.CompletionStatus != nil {
			return EndPhase(c.Code)
		}
		return Stopped
	case v1.AttemptCompleted:
		return Retry
	case v1.AttemptDeletionPending, v1.AttemptDeletionRequested, v1.AttemptDeleting:
		return Stopping
	case v1.AttemptRunning:
		if IsGang(f) && f.Status.AttemptStatus.PeersTime == nil {
			return Barrier
		}
		return Running
	case v1.AttemptCreationPending, v1.AttemptCreationRequested, v1.AttemptPreparing:
		// The pod is ahead of the status in the Framework, by seconds if the controller has many statuses to write.
		switch {
		case pod != nil && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			return Starting
		case queued && (pod != nil || t.State == v1.AttemptPreparing):
			return Queued
		}
	}
	return Waiting
}

// TaskName returns the displayed name of a task: role[index].
func TaskName(role string, index int32) string {
	return role + "[" + strconv.Itoa(int(index)) + "]"
}

// ParseTask parses the name of a task: role[index], role/index or role-index. ok is false if the text isn't such a name.
func ParseTask(s string) (role string, index int32, ok bool) {
	s = strings.TrimSuffix(s, "]")
	at := strings.LastIndexAny(s, "[/-")
	if at <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(s[at+1:], 10, 32)
	return s[:at], int32(n), err == nil && n >= 0
}

// Avoids reports whether new pods of a job stay away from a node that failed it.
func Avoids(n v1.AvoidedNode, now time.Time) bool {
	return len(machine.Avoided(&v1.FrameworkStatus{AvoidedNodes: []v1.AvoidedNode{n}}, machine.DefaultPolicy(), now)) > 0
}
