package v2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// detail describes a job with one of its attempts.
type detail struct {
	DebugID   string    `json:"debugId"`
	Name      string    `json:"name"`
	Tags      []string  `json:"tags"`
	Priority  string    `json:"jobPriority,omitempty"`
	Status    jobStatus `json:"jobStatus"`
	TaskRoles roles     `json:"taskRoles"`
}

type jobStatus struct {
	progress

	AttemptID    int32         `json:"attemptId"`
	AttemptState string        `json:"attemptState"`
	AppID        string        `json:"appId"`
	Done         int           `json:"appProgress"`
	TrackingURL  string        `json:"appTrackingUrl"`
	AppCreated   *int64        `json:"appCreatedTime"`
	AppLaunched  *int64        `json:"appLaunchedTime"`
	AppCompleted *int64        `json:"appCompletedTime"`
	ExitSpec     *rules.Rule   `json:"appExitSpec"`
	Diagnostics  *string       `json:"appExitDiagnostics"`
	Messages     *exitMessages `json:"appExitMessages"`
	TriggerText  *string       `json:"appExitTriggerMessage"`
	TriggerRole  *string       `json:"appExitTriggerTaskRoleName"`
	TriggerIndex *int32        `json:"appExitTriggerTaskIndex"`
	ExitType     *string       `json:"appExitType"`

	Reason string `json:"reason,omitempty"`
}

// roles are encoded in the order of the job file, because clients treat the first role as the main role.
type roles []role

type role struct {
	Status struct {
		Name string `json:"name"`
	} `json:"taskRoleStatus"`
	Tasks []task `json:"taskStatuses"`
}

// MarshalJSON returns an object whose keys are in the order of the roles.
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

func get(c *server.Call) error {
	j, d, err := read(c)
	if err != nil {
		return err
	}
	attempt := int32(-1)
	if text := c.Request.PathValue("attempt"); text != "" {
		if attempt, err = number("attempt", text); err != nil {
			return err
		}
	}
	out, err := newDetail(d, attempt, exits(c, j))
	if err != nil {
		return err
	}
	return c.JSON(out)
}

// read finds the job of the request's path, and reads its details.
func read(c *server.Call) (*app.Job, *job.Detail, error) {
	j, err := find(c, "job.read")
	if err != nil {
		return nil, nil, err
	}
	d, err := j.Detail(c.Context())
	return j, d, err
}

// number parses a number in a path. It returns an error for negative numbers and for numbers beyond 32 bits, because they can't be an attempt or a
// task.
func number(name, text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, wire.Bad(fmt.Sprintf("%q must be a number that isn't below zero", name))
	}
	return int32(n), nil
}

// newDetail returns the detail of an attempt of a job. The attempt -1 is the latest attempt. The fields of the job itself always describe the latest
// attempt.
func newDetail(d *job.Detail, attempt int32, meaning meaning) (*detail, error) {
	at := 0
	if attempt >= 0 {
		at = slices.IndexFunc(d.Attempts, func(a fapi.Attempt) bool { return a.ID == attempt })
	}
	if at < 0 {
		return nil, app.NoJob(d.User, d.Name)
	}
	out := &detail{DebugID: d.Framework, Name: d.Name, Tags: append([]string{}, d.Tags...), Priority: d.Priority, TaskRoles: roles{}}
	s := &out.Status
	*s = jobStatus{progress: newProgress(&d.Row), AppID: d.Framework, Reason: d.Message}
	s.AttemptState, s.ExitCode = s.State, nil // the state and the code of the attempt
	for _, one := range d.Roles {
		out.TaskRoles = append(out.TaskRoles, newRole(one.Name))
	}
	if at >= len(d.Attempts) {
		return out, nil // the attempt hasn't begun
	}
	a := &d.Attempts[at]
	tasks, _ := d.TasksIn(a.ID)
	s.attempt(d, a, at > 0)
	if e := a.Completion; e != nil && e.CompletionStatus != nil {
		s.end(d, e, tasks, meaning)
	}
	for i := range tasks {
		out.TaskRoles.add(newTask(d, a.ID, &tasks[i], meaning), tasks[i].Role)
	}
	return out, nil
}

// attempt sets the id and the times of an attempt. over means that the attempt has ended.
func (s *jobStatus) attempt(d *job.Detail, a *fapi.Attempt, over bool) {
	s.AttemptID, s.AppID = a.ID, fmt.Sprintf("%s_%d", d.Framework, a.ID)
	s.AppCreated, s.AppLaunched, s.AppCompleted = milliseconds(&a.Started), milliseconds(a.Run), milliseconds(a.Completed)
	if s.AppLaunched == nil {
		s.AppLaunched = s.AppCompleted
	}
	if over {
		s.AttemptState = stopped // unless its completion has another result
	}
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
		*r = append(*r, newRole(name)) // a role that was removed
	}
	(*r)[i].Tasks = append((*r)[i].Tasks, t)
}

// config responds with the job file. Clients parse it as JSON or as YAML, and ignore the Content-Type.
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
		return c.Text(text) // a JSON file can't be parsed as one with these keys
	}
	return c.Text(string(body))
}
