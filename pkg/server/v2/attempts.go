package v2

import (
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/server"
)

// attemptRoutes returns the routes for the attempts of a job. Only clients of earlier versions use these routes.
func attemptRoutes() []server.Route {
	return []server.Route{
		{Method: http.MethodGet, Path: one + "/job-attempts", Rule: "job.read", Serve: listAttempts, Out: reflect.TypeFor[[]jobAttempt](), Summary: "Lists the attempts of a job, latest first; attempts/{attempt} returns more", Errors: []string{"NoJobError"}},
		{Method: http.MethodGet, Path: one + "/job-attempts/healthz", Rule: "job.read", Serve: healthyAttempts, Media: textMedia, Summary: "Reports that attempts of jobs are available", Errors: []string{"NoJobError"}},
		{Method: http.MethodGet, Path: one + "/job-attempts/{attempt}", Rule: "job.read", Serve: getAttempt, Out: reflect.TypeFor[jobAttempt](), Summary: "Returns an attempt of a job; attempts/{attempt} returns more", Errors: []string{"NoJobError"}},
	}
}

// jobAttempt is an attempt of a job in the format that the portal of OpenPAI 1.0 reads.
type jobAttempt struct {
	JobName     string           `json:"jobName"`
	Framework   string           `json:"frameworkName"`
	UID         string           `json:"uid"`
	User        string           `json:"userName"`
	State       string           `json:"state"`
	OriginState string           `json:"originState"`
	Attempt     int32            `json:"attemptIndex"`
	JobStarted  *int64           `json:"jobStartedTime"`
	Started     *int64           `json:"attemptStartedTime"`
	Completed   *int64           `json:"attemptCompletedTime"`
	ExitCode    *int32           `json:"exitCode"`
	ExitPhrase  *string          `json:"exitPhrase"`
	ExitType    *string          `json:"exitType"`
	Diagnostics *exitDiagnostics `json:"exitDiagnostics"`

	TriggerText  *string       `json:"appExitTriggerMessage"`
	TriggerRole  *string       `json:"appExitTriggerTaskRoleName"`
	TriggerIndex *int32        `json:"appExitTriggerTaskIndex"`
	ExitSpec     *rules.Rule   `json:"appExitSpec"`
	AppText      *string       `json:"appExitDiagnostics"`
	Messages     *exitMessages `json:"appExitMessages"`

	GPUs      int    `json:"totalGpuNumber"`
	Tasks     int    `json:"totalTaskNumber"`
	Roles     int    `json:"totalTaskRoleNumber"`
	Priority  string `json:"jobPriority,omitempty"`
	TaskRoles roles  `json:"taskRoles"`
	Latest    bool   `json:"isLatest"`
}

type exitDiagnostics struct {
	Summary  *string      `json:"diagnosticsSummary"`
	Runtime  *runtimeExit `json:"runtime"`
	Launcher *string      `json:"launcher"`
}

func newAttempt(d *job.Detail, attempt int32, meaning meaning) (*jobAttempt, error) {
	whole, err := newDetail(d, attempt, meaning)
	if err != nil {
		return nil, err
	}
	s := &whole.Status
	out := &jobAttempt{JobName: whole.Name, Framework: whole.DebugID, UID: s.AppID, User: s.Username, State: s.AttemptState, OriginState: s.SubState, Attempt: s.AttemptID,
		JobStarted: s.Created, Started: s.AppCreated, Completed: s.AppCompleted, ExitCode: s.ExitCode, ExitType: s.ExitType,
		TriggerText: s.TriggerText, TriggerRole: s.TriggerRole, TriggerIndex: s.TriggerIndex, ExitSpec: s.ExitSpec, AppText: s.Diagnostics, Messages: s.Messages,
		GPUs: max(0, d.GPUs), Tasks: d.Row.Tasks, Roles: d.Row.Roles, Priority: d.Priority, TaskRoles: whole.TaskRoles,
		Latest: len(d.Attempts) == 0 || s.AttemptID == d.Attempts[0].ID}
	if s.ExitSpec != nil {
		out.ExitPhrase = &s.ExitSpec.Phrase
	}
	if s.Messages != nil {
		out.Diagnostics = &exitDiagnostics{s.Diagnostics, s.Messages.Runtime, s.Messages.Launcher}
	}
	return out, nil
}

func listAttempts(c *server.Call) error {
	j, d, err := read(c)
	if err != nil {
		return err
	}
	out, meaning := []*jobAttempt{}, exits(c, j)
	ids := []int32{-1}
	for i := len(d.Attempts) - 1; i > 0; i-- { // the latest comes first, the others in order
		ids = append(ids, d.Attempts[i].ID)
	}
	for _, id := range ids {
		a, err := newAttempt(d, id, meaning)
		if err != nil {
			return err
		}
		out = append(out, a)
	}
	return c.JSON(out)
}

func getAttempt(c *server.Call) error {
	attempt, err := number("attempt", c.Request.PathValue("attempt"))
	if err != nil {
		return err
	}
	j, d, err := read(c)
	if err != nil {
		return err
	}
	out, err := newAttempt(d, attempt, exits(c, j))
	if err != nil {
		return err
	}
	return c.JSON(out)
}

func healthyAttempts(c *server.Call) error {
	if _, err := find(c, "job.read"); err != nil {
		return err
	}
	return c.Text("ok")
}
