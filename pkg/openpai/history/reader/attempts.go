package reader

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5/pgtype"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// These constants limit the data that is taken for one job. If there is more data, only the latest is taken.
const (
	maxAttempts     = 200
	maxTaskAttempts = v1.MaxTasks
	maxEvents       = 1000
)

// write is a change to an archive. A giver applies the change when enough memory is free, and reserves weight bytes until the change has been made.
type (
	write func(ctx context.Context, to archive.Store) error
	giver func(weight int64, w write) error
)

// tags adds the tags from the database to jobs.
func (s *Source) tags(ctx context.Context, jobs map[string]*job) error {
	if !s.has(tagsTable, "frameworkName", "name", "uid") {
		return nil
	}
	found := map[string][]string{}
	err := s.latest(ctx, tagsTable, `"frameworkName", name`, "uid", v1.MaxTags, namesOf(jobs), func(scan func(...any) error) error {
		var name, tag string
		if err := scan(&name, &tag); err != nil {
			return err
		}
		if v1.ValidTag(tag) {
			found[name] = append(found[name], tag)
		}
		return nil
	})
	for name, tags := range found {
		jobs[name].f.Annotations[v1.AnnotationTags] = v1.WriteTags(tags)
	}
	return err
}

// earlier reads the attempts before the last attempt of each job. It leaves out attempts that can't be read. If the outcomes of a job's attempts are
// too large to keep, it leaves out the attempts of the job's tasks.
func (s *Source) earlier(ctx context.Context, jobs map[string]*job, give giver) error {
	if !s.has(attemptsTable, "frameworkName", "attemptIndex", "historyType", "snapshot") {
		return nil
	}
	columns := `"frameworkName", COALESCE("attemptIndex", -1), ` + within("snapshot", maxObject)
	kept := int64(0)
	return s.latest(ctx, attemptsTable, columns, `"attemptIndex" DESC, uid`, maxAttempts, namesOf(jobs), func(scan func(...any) error) error {
		var name, snapshot string
		var id int32
		if err := scan(&name, &id, &snapshot); err != nil {
			return err
		}
		j := jobs[name]
		f, weight := j.earlier(id, []byte(snapshot))
		if f == nil {
			return nil
		}
		if n := outcomeBytes(j.attempts[id]); kept+n <= batchBytes {
			kept += n
		} else {
			delete(j.attempts, id)
		}
		return give(weight, func(ctx context.Context, to archive.Store) error { return to.SaveAttempt(ctx, f) })
	})
}

// outcomeBytes returns the maximum size in memory of an attempt without its tasks.
func outcomeBytes(a v1.FrameworkAttemptStatus) int64 {
	text, err := json.Marshal(a)
	if err != nil { // it isn't kept in that case
		return maxDecoded
	}
	return weigh(text)
}

// earlier returns the job at the end of an attempt, and the maximum size of the returned job in memory. It returns nil if the text doesn't contain
// the attempt.
func (j *job) earlier(id int32, text []byte) (*v1.Framework, int64) {
	if id < 0 || id >= j.f.Status.AttemptStatus.ID {
		return nil, 0
	}
	old, weight, err := decode(text)
	if err != nil || old.Status == nil || old.Status.AttemptStatus.ID != id {
		return nil, 0
	}
	s := old.Status
	end := s.AttemptStatus.CompletionTime
	if end == nil && !s.TransitionTime.IsZero() {
		end = &s.TransitionTime
	}
	if end == nil {
		end = &metav1.Time{Time: j.end}
	}
	if err := j.attempt(&s.AttemptStatus, end); err != nil {
		return nil, 0
	}
	return j.as(&s.AttemptStatus), weight
}

// as returns the state of the job during an attempt, in the form that the archive needs.
func (j *job) as(a *v1.FrameworkAttemptStatus) *v1.Framework {
	f := *j.f
	f.Status = &v1.FrameworkStatus{
		StartTime: j.f.Status.StartTime, State: v1.AttemptCompleted, RetryPolicyStatus: v1.RetryPolicyStatus{TotalRetriedCount: a.ID}, AttemptStatus: *a,
	}
	if a.ID == j.f.Status.AttemptStatus.ID {
		status := *j.f.Status
		status.AttemptStatus = *a
		f.Status = &status
	}
	return &f
}

// taskAttempts reads the attempts of tasks that were retried or removed.
func (s *Source) taskAttempts(ctx context.Context, jobs map[string]*job, give giver) error {
	if !s.has(tasksTable, "frameworkName", "attemptIndex", "taskroleName", "taskAttemptIndex", "snapshot") {
		return nil
	}
	columns := `"frameworkName", COALESCE("attemptIndex", -1), COALESCE("taskroleName", ''), COALESCE("taskAttemptIndex", -1), ` + within("snapshot", maxText)
	return s.latest(ctx, tasksTable, columns, `"attemptIndex" DESC, "taskAttemptIndex" DESC, uid`, maxTaskAttempts, namesOf(jobs), func(scan func(...any) error) error {
		var name, role, snapshot string
		var attempt, id int32
		if err := scan(&name, &attempt, &role, &id, &snapshot); err != nil {
			return err
		}
		j := jobs[name]
		of, there := j.attempts[attempt]
		var old struct {
			Status *v1.TaskStatus `json:"status"`
		}
		text := []byte(snapshot)
		weight := weigh(text)
		readable := weight <= maxDecoded && json.Unmarshal(text, &old) == nil
		if !readable || !there || old.Status == nil || !roleNames.MatchString(role) || old.Status.Index < 0 || id < 0 || old.Status.AttemptStatus.ID != id {
			return nil
		}
		j.task(role, old.Status, &of)
		f := j.as(&of)
		one := []archive.TaskAttempt{{Role: role, Status: *old.Status}}
		return give(weight, func(ctx context.Context, to archive.Store) error { return to.SaveTaskAttempts(ctx, f, one) })
	})
}

// events reads the events of Kubernetes about jobs. Some releases of OpenPAI stored no events; it reads nothing then.
func (s *Source) events(ctx context.Context, jobs map[string]*job, give giver) error {
	if !s.has(eventsTable, "frameworkName", "taskName", "type", "reason", "message", "lastTimestamp", "count", "sourceComponent") {
		return nil
	}
	columns := `"frameworkName", uid, COALESCE("taskName", ''), type, COALESCE(reason, ''), COALESCE(left(message, 4096), ''), "lastTimestamp", COALESCE(count, 1), COALESCE("sourceComponent", '')`
	last, all, weight := "", []api.Event{}, int64(0)
	flush := func() error {
		if len(all) == 0 {
			return nil
		}
		framework, events, taken := jobs[last].f.Name, all, weight
		all, weight = nil, 0
		return give(taken, func(ctx context.Context, to archive.Store) error { return to.SaveEvents(ctx, framework, events) })
	}
	err := s.latest(ctx, eventsTable, columns, `"lastTimestamp" DESC NULLS LAST, uid`, maxEvents, namesOf(jobs), func(scan func(...any) error) error {
		var name, task string
		var e api.Event
		var at pgtype.Timestamptz
		if err := scan(&name, &e.UID, &task, &e.Type, &e.Reason, &e.Message, &at, &e.Count, &e.Source); err != nil {
			return err
		}
		if name != last {
			if err := flush(); err != nil {
				return err
			}
			last = name
		}
		if e.Time = instant(at); !e.Time.IsZero() && (e.Type == "Normal" || e.Type == "Warning") {
			e.Object = "Pod/" + task
			all = append(all, e)
			weight += int64(elementBytes + len(e.Reason) + len(e.Message) + len(e.Source) + len(task))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

func namesOf(jobs map[string]*job) []string {
	out := make([]string, 0, len(jobs))
	for name := range jobs {
		out = append(out, name)
	}
	return out
}
