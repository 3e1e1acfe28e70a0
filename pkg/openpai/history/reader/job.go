package reader

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	people "github.com/openpai/paictl/pkg/people/v1"
)

// These are the reasons for leaving out a job. They don't quote the database, because it may contain secrets.
var (
	errNotEnded = errors.New("it hasn't ended: run this again when it has")
	errUser     = errors.New("the name of its user can't be one here")
	errName     = errors.New("its name can't be one here")
	errVC       = errors.New("the name of its virtual cluster can't be one here")
	errLarge    = fmt.Errorf("its object has more than %d MiB", maxObject>>20)
	errObject   = errors.New("its object can't be read")
	errOutcome  = errors.New("its object doesn't say how it ended")
	errTime     = errors.New("its times can't be right")
	errTwice    = errors.New("its object is that of another job, too")
)

var (
	vcNames   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,255}$`)
	roleNames = regexp.MustCompile(`^[a-z0-9]{1,63}$`)
)

// begin is a time before the first job of OpenPAI.
var begin = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// job is a job in the format of the archive. f is the job with its last attempt.
type job struct {
	f    *v1.Framework
	gpus map[string]claim // by role
	end  time.Time
	// attempts holds the attempts that were read, by ID and without their tasks.
	attempts map[int32]v1.FrameworkAttemptStatus
	weight   int64 // how much memory it takes at most
}

// check returns the reason why a job is left out. It uses only the short columns of the row, and returns nil if these give no reason.
func (r *row) check(now time.Time) error {
	submitted := instant(r.submitted)
	switch {
	case !people.ValidName(r.user):
		return errUser
	case strings.ContainsAny(r.job, "~/") || protocol.CheckName(r.job) != nil:
		return errName
	case r.vc != "" && !vcNames.MatchString(r.vc):
		return errVC
	case !plausible(submitted, now):
		return errTime
	case !r.ended():
		return errNotEnded
	case r.size > maxObject:
		return errLarge
	}
	return nil
}

func plausible(t, now time.Time) bool { return t.After(begin) && t.Before(now.Add(24*time.Hour)) }

// read converts a row to a job. It returns the reason as the error if the job is left out.
func (r *row) read(now time.Time) (*job, error) {
	if err := r.check(now); err != nil {
		return nil, err
	}
	old, weight, err := decode([]byte(r.snapshot))
	if err != nil {
		return nil, err
	}
	if old.Unreadable != "" || old.Invalid() != "" {
		return nil, errObject
	}
	s := old.Status
	if s == nil || s.State != v1.Completed || s.CompletionTime == nil || s.AttemptStatus.CompletionStatus == nil || s.AttemptStatus.CompletionStatus.CompletionStatus == nil {
		return nil, errOutcome
	}
	if !plausible(s.CompletionTime.Time, now) || s.RunTime != nil && !plausible(s.RunTime.Time, now) {
		return nil, errTime
	}
	if s.AttemptStatus.ID < 0 || s.RetryPolicyStatus.TotalRetriedCount < 0 || s.RetryPolicyStatus.AccountableRetriedCount < 0 {
		return nil, errObject
	}
	j := &job{gpus: claims(old), end: s.CompletionTime.Time, attempts: map[int32]v1.FrameworkAttemptStatus{}, weight: weight + int64(len(r.config))}
	j.f = r.framework(old)
	if err := j.attempt(&s.AttemptStatus, s.CompletionTime); err != nil {
		return nil, err
	}
	j.f.Status = &v1.FrameworkStatus{
		StartTime: s.StartTime, RunTime: s.RunTime, CompletionTime: s.CompletionTime, State: v1.Completed, TransitionTime: s.TransitionTime,
		RetryPolicyStatus: s.RetryPolicyStatus, AttemptStatus: s.AttemptStatus,
	}
	return j, nil
}

// framework returns the job without its status. It leaves out the commands, images and tokens of the job's pods.
func (r *row) framework(old *v1.Framework) *v1.Framework {
	config := masked(r.config)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{
		Name: v1.ObjectName(r.user, r.job), UID: r.uid(old), CreationTimestamp: metav1.NewTime(instant(r.submitted).Truncate(time.Second)),
		Labels: map[string]string{v1.LabelUser: r.user, v1.LabelVC: r.vc},
		Annotations: map[string]string{
			v1.AnnotationJobName: r.job, v1.AnnotationConfig: config, v1.AnnotationGPUs: old.Annotations[v1.AnnotationGPUs],
		},
	}}
	if slices.Contains(v1.Priorities(), r.priority) {
		f.Annotations[v1.AnnotationPriority] = r.priority
	}
	if e := old.Spec.ExecutionType; e == v1.ExecutionCreate || e == v1.ExecutionStart || e == v1.ExecutionStop {
		f.Spec.ExecutionType = e
	}
	written := writtenRoles(config)
	for i := range old.Spec.TaskRoles {
		role := v1.TaskRole{Name: old.Spec.TaskRoles[i].Name, TaskNumber: max(0, old.Spec.TaskRoles[i].TaskNumber)}
		if name := written[role.Name]; name != "" {
			role.Task.Pod.Annotations = map[string]string{v1.AnnotationTaskRole: name}
		}
		f.Spec.TaskRoles = append(f.Spec.TaskRoles, role)
	}
	return f
}

// uid returns the UID of the job's object, so that a history that already has the job recognizes it. If the job never had an object, uid returns a
// UID that is the same in each run.
func (r *row) uid(old *v1.Framework) types.UID {
	if known(old.UID) {
		return old.UID
	}
	return types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte("openpai job "+r.name)).String())
}

// known reports whether a text is the UID of an object of Kubernetes.
func known(uid types.UID) bool {
	u, err := uuid.Parse(string(uid))
	return err == nil && u.String() == string(uid)
}

// attempt converts an attempt and its tasks to a form that the archive accepts. end is the time when the attempt ended.
func (j *job) attempt(a *v1.FrameworkAttemptStatus, end *metav1.Time) error {
	a.TaskChunks, a.TaskParts = 0, nil
	if a.CompletionTime == nil {
		a.CompletionTime = end
	}
	if a.StartTime.IsZero() {
		a.StartTime = j.f.CreationTimestamp
	}
	tasks := 0
	a.TaskRoleStatuses = slices.DeleteFunc(a.TaskRoleStatuses, func(r *v1.TaskRoleStatus) bool { return r == nil || !roleNames.MatchString(r.Name) })
	for _, r := range a.TaskRoleStatuses {
		r.TaskStatuses = slices.DeleteFunc(r.TaskStatuses, func(t *v1.TaskStatus) bool { return t == nil || t.Index < 0 })
		for _, t := range r.TaskStatuses {
			j.task(r.Name, t, a)
		}
		tasks += len(r.TaskStatuses)
	}
	if tasks > v1.MaxTasks {
		return errObject
	}
	short := *a
	short.TaskRoleStatuses = nil
	j.attempts[a.ID] = short
	return nil
}

// task converts a task to a form that the archive accepts. The converted task is complete, at the latest together with its attempt. It held its GPUs
// from the time when it began to run.
func (j *job) task(role string, t *v1.TaskStatus, of *v1.FrameworkAttemptStatus) {
	if !slices.Contains(states, t.State) {
		t.State = v1.Completed
	}
	a := &t.AttemptStatus
	if a.CompletionTime == nil {
		a.CompletionTime = of.CompletionTime
	}
	if a.StartTime.IsZero() {
		a.StartTime = of.StartTime
	}
	a.GPUs = nil
	c := j.gpus[role]
	if c.gpus <= 0 || a.RunTime == nil || a.CompletionTime == nil || a.PodUID == nil || !known(types.UID(*a.PodUID)) {
		return
	}
	if a.RunTime.Time.Before(j.f.CreationTimestamp.Time) || a.CompletionTime.Before(a.RunTime) || a.CompletionTime.After(j.end.Add(time.Minute)) {
		return // the time is unknown
	}
	a.GPUs = &v1.TaskGPUs{Count: c.gpus, Type: c.model, Opportunistic: c.opportunistic, Since: *a.RunTime}
}

var states = []v1.State{
	v1.AttemptCreationPending, v1.AttemptCreationRequested, v1.AttemptPreparing, v1.AttemptRunning, v1.AttemptDeletionPending,
	v1.AttemptDeletionRequested, v1.AttemptDeleting, v1.AttemptCompleted, v1.Completed,
}
