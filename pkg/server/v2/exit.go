package v2

import (
	"strings"

	"github.com/openpai/paictl/pkg/job"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

// meaning is a function that returns the rule about an exit code.
type meaning func(code int32) *rules.Rule

// exits returns a meaning for a request. The meaning reads the rules at its first call, because the administrator may change the rules at any time.
func exits(c *server.Call, j *app.Job) meaning {
	set := (*rules.Set)(nil)
	return func(code int32) *rules.Rule {
		if set == nil {
			if set = j.ExitRules(c.Context()); set == nil {
				set = rules.Builtin()
			}
		}
		rule := set.ByCode(int(code))
		rule.Pattern = rules.Pattern{} // clients don't need the pattern
		return &rule
	}
}

// exitMessages describes an exit in addition to its code. The texts come from the runtime's report of the task that caused the exit. Without a
// report, they come from the controller's message.
type exitMessages struct {
	Container *string      `json:"container"`
	Runtime   *runtimeExit `json:"runtime"`
	Launcher  *string      `json:"launcher"`
}

// runtimeExit contains the report of a task's runtime.
type runtimeExit struct {
	Name             string   `json:"name"`
	ExitCode         int      `json:"exitCode"`
	OriginalUserExit int      `json:"originalUserExitCode"`
	OriginUserExit   int      `json:"originUserExitCode"` // in the spelling of the JS SDK
	Reason           string   `json:"reason,omitempty"`
	Solution         string   `json:"solution,omitempty"`
	MatchedUser      string   `json:"matchedUserLogString,omitempty"`
	MatchedPlatform  string   `json:"matchedPlatformLogString,omitempty"`
	Logs             exitLogs `json:"errorLogs"`
}

type exitLogs struct {
	User     string `json:"user,omitempty"`
	Platform string `json:"platform,omitempty"`
}

// end sets the fields of a finished attempt.
func (s *jobStatus) end(d *job.Detail, e *fv1.FrameworkAttemptCompletionStatus, tasks []job.Task, meaning meaning) {
	kind := string(e.Type.Name)
	s.ExitCode, s.ExitSpec, s.Diagnostics, s.ExitType, s.Done = &e.Code, meaning(e.Code), &e.Diagnostics, &kind, 1
	s.AttemptState = word(job.EndPhase(e.Code))
	s.Messages = &exitMessages{Launcher: &e.Diagnostics}
	if t := job.Culprit(e, tasks); t != nil && e.Code != 0 {
		s.Messages = newMessages(t, &e.Diagnostics, meaning)
	}
	if t := e.Trigger; t != nil {
		name := t.TaskRoleName
		for i := range d.Roles {
			if d.Roles[i].Object == name {
				name = d.Roles[i].Name // clients look it up in the job file
			}
		}
		s.TriggerText, s.TriggerRole, s.TriggerIndex = &t.Message, &name, t.TaskIndex
	}
}

func newMessages(t *job.Task, diagnostics *string, meaning meaning) *exitMessages {
	r, ok := t.Report()
	if !ok {
		return &exitMessages{Launcher: diagnostics}
	}
	rule := meaning(int32(r.ExitCode))
	return &exitMessages{Runtime: &runtimeExit{Name: "app", ExitCode: r.ExitCode, OriginalUserExit: r.UserExitCode, OriginUserExit: r.UserExitCode,
		Reason: rule.Reason, Solution: strings.Join(rule.Solution, "\n"), MatchedUser: r.MatchedUserLog, MatchedPlatform: r.MatchedPlatformLog,
		Logs: exitLogs{strings.Join(r.UserLog, "\n"), strings.Join(r.PlatformLog, "\n")}}}
}
