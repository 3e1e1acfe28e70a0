package v2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	fapi "github.com/openpai/paictl/pkg/framework/api"
	fv1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/desk"
	"github.com/openpai/paictl/pkg/server/wire"
)

// detail is all about one attempt of a job.
type detail struct {
	DebugID   string    `json:"debugId"`
	Name      string    `json:"name"`
	Tags      []string  `json:"tags"`
	Status    jobStatus `json:"jobStatus"`
	TaskRoles roles     `json:"taskRoles"`
}

type jobStatus struct {
	progress
	AttemptID    int32   `json:"attemptId"`
	AttemptState string  `json:"attemptState"`
	AppID        string  `json:"appId"`
	Done         int     `json:"appProgress"`
	TrackingURL  string  `json:"appTrackingUrl"`
	AppCreated   *int64  `json:"appCreatedTime"`
	AppLaunched  *int64  `json:"appLaunchedTime"`
	AppCompleted *int64  `json:"appCompletedTime"`
	ExitSpec     *exit   `json:"appExitSpec"`
	Diagnostics  *string `json:"appExitDiagnostics"`
	TriggerText  *string `json:"appExitTriggerMessage"`
	TriggerRole  *string `json:"appExitTriggerTaskRoleName"`
	TriggerIndex *int32  `json:"appExitTriggerTaskIndex"`
	ExitType     *string `json:"appExitType"`
	Reason       string  `json:"reason,omitempty"`
}

// exit is how something ended.
type exit struct {
	Code   int32  `json:"code"`
	Phrase string `json:"phrase"`
	Type   string `json:"type"`
}

// roles are written in the order of the job file: clients take the first as the main one.
type roles []role

type role struct {
	Status struct {
		Name string `json:"name"`
	} `json:"taskRoleStatus"`
	Tasks []task `json:"taskStatuses"`
}

// MarshalJSON writes an object whose keys have an order.
func (r roles) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range r {
		name, err := json.Marshal(r[i].Status.Name)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(r[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(body)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

type task struct {
	Index       int32             `json:"taskIndex"`
	UID         string            `json:"taskUid"`
	State       string            `json:"taskState"`
	Container   string            `json:"containerId"`
	IP          string            `json:"containerIp"`
	Node        string            `json:"containerNodeName"`
	Ports       map[string]string `json:"containerPorts"`
	GPUs        *int              `json:"containerGpus"`
	Log         string            `json:"containerLog"`
	ExitCode    *int32            `json:"containerExitCode"`
	ExitSpec    *exit             `json:"containerExitSpec"`
	Diagnostics *string           `json:"containerExitDiagnostics"`
	Retries     int32             `json:"retries"`
	Accountable int32             `json:"accountableRetries"`
	Created     *int64            `json:"createdTime"`
	Launched    *int64            `json:"launchedTime"`
	Completed   *int64            `json:"completedTime"`
	AttemptID   int32             `json:"attemptId"`
	Attempt     string            `json:"attemptState"`
	ACreated    *int64            `json:"currentAttemptCreatedTime"`
	ALaunched   *int64            `json:"currentAttemptLaunchedTime"`
	ACompleted  *int64            `json:"currentAttemptCompletedTime"`
	Phase       string            `json:"phase"`
}

func get(c *server.Call) error {
	j, err := find(c, "job.read")
	if err != nil {
		return err
	}
	d, err := j.Detail(c.Context())
	if err != nil {
		return err
	}
	at := 0 // the latest is the first
	if text := c.Request.PathValue("attempt"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return wire.Bad("the attempt must be a number")
		}
		at = slices.IndexFunc(d.Attempts, func(a fapi.Attempt) bool { return a.ID == int32(n) })
		if at < 0 {
			return desk.NoJob(j.User(), j.Name())
		}
	}
	return c.JSON(newDetail(d, at))
}

func newDetail(d *job.Detail, at int) *detail {
	r := newRow(&d.Row)
	out := &detail{DebugID: r.DebugID, Name: r.Name, Tags: r.Tags, TaskRoles: roles{}}
	s := &out.Status
	*s = jobStatus{progress: r.progress, AttemptState: r.State, AppID: r.DebugID, Reason: d.Message}
	s.ExitCode = nil // it is the attempt's
	for _, one := range d.Roles {
		out.TaskRoles = append(out.TaskRoles, newRole(one.Name))
	}
	if at >= len(d.Attempts) {
		return out
	}
	a := &d.Attempts[at]
	s.AttemptID, s.AppID = a.ID, fmt.Sprintf("%s_%d", r.DebugID, a.ID)
	s.AppCreated, s.AppLaunched, s.AppCompleted = milliseconds(&a.Started), milliseconds(a.Run), milliseconds(a.Completed)
	if at > 0 {
		s.AttemptState = stopped
	}
	if e := a.Completion; e != nil && e.CompletionStatus != nil {
		s.end(e)
	}
	if at > 0 {
		for i := range a.Tasks {
			out.TaskRoles.add(newTask(out, a.ID, &job.Task{TaskAttempt: a.Tasks[i], Retries: a.Tasks[i].ID, Phase: phaseOf(&a.Tasks[i])}), a.Tasks[i].Role)
		}
		return out
	}
	for i := range d.Tasks {
		out.TaskRoles.add(newTask(out, a.ID, &d.Tasks[i]), d.Tasks[i].Role)
	}
	return out
}

// end fills in how an attempt ended.
func (s *jobStatus) end(e *fv1.FrameworkAttemptCompletionStatus) {
	s.ExitCode, s.ExitSpec, s.Diagnostics = &e.Code, newExit(e.CompletionStatus), &e.Diagnostics
	kind := string(e.Type.Name)
	s.ExitType, s.Done = &kind, 1
	s.AttemptState = endWord(e.Code)
	if t := e.Trigger; t != nil {
		s.TriggerText, s.TriggerRole, s.TriggerIndex = &t.Message, &t.TaskRoleName, t.TaskIndex
	}
}

func newExit(e *fv1.CompletionStatus) *exit {
	return &exit{e.Code, e.Phrase, string(e.Type.Name)}
}

// endWord is the state of what ended with a code.
func endWord(code int32) string {
	switch code {
	case 0:
		return succeeded
	case -210, -220, -230, -240:
		return stopped
	}
	return failed
}

func phaseOf(a *fapi.TaskAttempt) job.Phase {
	if a.Completion == nil || a.Completion.CompletionStatus == nil {
		return job.Stopped
	}
	switch endWord(a.Completion.Code) {
	case succeeded:
		return job.Succeeded
	case stopped:
		return job.Stopped
	}
	return job.Failed
}

func newRole(name string) role {
	r := role{Tasks: []task{}}
	r.Status.Name = name
	return r
}

func (r *roles) add(t task, name string) {
	i := slices.IndexFunc(*r, func(one role) bool { return one.Status.Name == name })
	if i < 0 {
		i = len(*r)
		*r = append(*r, newRole(name)) // one that was taken away
	}
	(*r)[i].Tasks = append((*r)[i].Tasks, t)
}

func newTask(d *detail, attempt int32, t *job.Task) task {
	out := task{Index: t.Index, UID: t.PodUID, State: word(t.Phase), Container: t.PodUID, IP: t.IP, Node: t.Node, Ports: map[string]string{}, Retries: t.Retries, AttemptID: t.ID,
		Attempt: word(t.Phase), Created: milliseconds(&t.Started), Launched: milliseconds(t.Run), Completed: milliseconds(t.Completed), Phase: string(t.Phase)}
	out.ACreated, out.ALaunched, out.ACompleted = out.Created, out.Launched, out.Completed
	out.Log = fmt.Sprintf("%s/jobs/%s~%s/attempts/%d/taskRoles/%s/taskIndex/%d/attempts/%d/logs", prefix, d.Status.Username, d.Name, attempt, t.Role, t.Index, t.ID)
	if e := t.Completion; e != nil && e.CompletionStatus != nil {
		out.ExitCode, out.ExitSpec, out.Diagnostics = &e.Code, newExit(e.CompletionStatus), &e.Diagnostics
	}
	return out
}

// config gives the job file. Clients parse it as JSON or as YAML, whatever its header says.
func config(c *server.Call) error {
	j, err := find(c, "job.config")
	if err != nil {
		return err
	}
	text, err := j.Config(c.Context())
	if err != nil {
		return err
	}
	if c.Request.URL.Query().Get("format") == "yaml" {
		return c.Text(text)
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return &wire.Error{Status: http.StatusNotFound, Code: "NoJobConfigError", Message: fmt.Sprintf("Config of job %s~%s can't be read.", j.User(), j.Name())}
	}
	body, err := json.Marshal(value)
	if err != nil {
		return c.Text(text) // keys that JSON hasn't got
	}
	return c.Text(string(body))
}
