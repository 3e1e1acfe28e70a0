// Package report writes and reads the exit report of a failed task: a few lines in OpenPAI's format, small enough
// for the kubelet, which truncates termination messages to 4,096 bytes.
// In: how the program ended and the matching rule. Out: text that any YAML parser can read, regardless of the
// bytes in the logs.
package report

import (
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// Max is the kubelet's limit of a container's termination message, in bytes.
const Max = 4096

// Start and End are the lines before and after a report. A reader takes the text between these lines.
const (
	Start = "[PAI_RUNTIME_ERROR_START]"
	End   = "[PAI_RUNTIME_ERROR_END]"
)

// Report is an exit report.
type Report struct {
	ExitCode     int `json:"exitCode"`           // the exit code of the container: the rule's code
	UserExitCode int `json:"originUserExitCode"` // the exit code of the program
	// The text that the rule matched.
	MatchedUserLog     string `json:"matchedUserLogString,omitempty"`
	MatchedPlatformLog string `json:"matchedPlatformLogString,omitempty"`
	GPUECC             bool   `json:"nvidiaDoubleEccError,omitempty"`
	OOMKilled          bool   `json:"oomKilled,omitempty"`
	// GPUFault is the machine's report of faulty GPUs of the task, even if the rule matched something else.
	GPUFault string `json:"gpuFault,omitempty"`
	// The log lines around it, or the last lines if nothing matched.
	UserLog     []string `json:"userLog,omitempty"`
	PlatformLog []string `json:"platformLog,omitempty"`
	// These are the indices of the lines with the match, or -1 if there is no match.
	userAt, platformAt int
}

// New returns the report of a failure.
func New(e rules.Exit, m rules.Match) Report {
	r := Report{ExitCode: m.Code, UserExitCode: e.Code, GPUECC: m.GPUECC, OOMKilled: m.OOMKilled, GPUFault: e.GPUFault,
		MatchedUserLog: clip(m.UserLog, maxMatched), MatchedPlatformLog: clip(m.PlatformLog, maxMatched)}
	r.UserLog, r.userAt = excerpt(e.UserLog, m.UserLogAt, maxUserLines)
	r.PlatformLog, r.platformAt = excerpt(e.PlatformLog, m.PlatformLogAt, maxPlatformLines)
	return r
}
