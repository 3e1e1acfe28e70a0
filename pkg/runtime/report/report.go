// Package report writes and reads the exit report of a failed task: a few lines in OpenPAI's format, small enough
// for the kubelet, which truncates termination messages to 4,096 bytes.
// In: how the program ended and the matching rule. Out: text that any YAML parser can read, regardless of the
// bytes in the logs.
package report

import (
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// Max is the kubelet's limit for termination messages, in bytes.
const Max = 4096

// Start and End are the lines before and after a report.
const (
	Start = "[PAI_RUNTIME_ERROR_START]"
	End   = "[PAI_RUNTIME_ERROR_END]"
)

// Report describes why a task failed.
type Report struct {
	ExitCode     int `json:"exitCode"`           // the exit code of the container: the rule's code
	UserExitCode int `json:"originUserExitCode"` // the exit code of the program
	// These fields contain the texts that the rule matched.
	MatchedUserLog     string `json:"matchedUserLogString,omitempty"`
	MatchedPlatformLog string `json:"matchedPlatformLogString,omitempty"`
	GPUECC             bool   `json:"nvidiaDoubleEccError,omitempty"`
	OOMKilled          bool   `json:"oomKilled,omitempty"`
	// GPUFault is the machine's report about faulty GPUs of the task. It is set even if the rule matched for another reason.
	GPUFault string `json:"gpuFault,omitempty"`
	// These fields contain the log lines around the matched texts. If no text matched, they contain the last lines.
	UserLog     []string `json:"userLog,omitempty"`
	PlatformLog []string `json:"platformLog,omitempty"`
	// userAt and platformAt are the indices of the lines with the matched texts, or -1.
	userAt, platformAt int
}

// New returns the report of a failure, from the facts about the exit and the matching rule.
func New(e rules.Exit, m rules.Match) Report {
	r := Report{ExitCode: m.Code, UserExitCode: e.Code, GPUECC: m.GPUECC, OOMKilled: m.OOMKilled, GPUFault: e.GPUFault,
		MatchedUserLog: clip(m.UserLog, maxMatched), MatchedPlatformLog: clip(m.PlatformLog, maxMatched)}
	r.UserLog, r.userAt = excerpt(e.UserLog, m.UserLogAt, maxUserLines)
	r.PlatformLog, r.platformAt = excerpt(e.PlatformLog, m.PlatformLogAt, maxPlatformLines)
	return r
}
