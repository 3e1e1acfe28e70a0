// Package report is what a failed task leaves to be read: a few lines in OpenPAI's format, small enough
// for the kubelet, which cuts termination messages at 4,096 bytes.
// In: how the program ended and which rule fitted. Out: text that any YAML parser reads back, whatever
// bytes the logs hold.
package report

import (
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// Max is the kubelet's limit of a container's termination message, in bytes.
const Max = 4096

// The lines around a report. A reader takes what stands between them.
const (
	Start = "[PAI_RUNTIME_ERROR_START]"
	End   = "[PAI_RUNTIME_ERROR_END]"
)

// Report is an exit report.
type Report struct {
	ExitCode     int `json:"exitCode"`           // of the container: the rule's code
	UserExitCode int `json:"originUserExitCode"` // of the program
	// What the rule was recognised by.
	MatchedUserLog     string `json:"matchedUserLogString,omitempty"`
	MatchedPlatformLog string `json:"matchedPlatformLogString,omitempty"`
	GPUECC             bool   `json:"nvidiaDoubleEccError,omitempty"`
	OOMKilled          bool   `json:"oomKilled,omitempty"`
	// GPUFault is what the machine says is wrong with GPUs of the task, whatever the rule was recognised by.
	GPUFault string `json:"gpuFault,omitempty"`
	// The lines around it, else the last ones.
	UserLog     []string `json:"userLog,omitempty"`
	PlatformLog []string `json:"platformLog,omitempty"`
	// Which of them have the match; -1 where none has.
	userAt, platformAt int
}

// New makes the report of a failure.
func New(e rules.Exit, m rules.Match) Report {
	r := Report{ExitCode: m.Code, UserExitCode: e.Code, GPUECC: m.GPUECC, OOMKilled: m.OOMKilled, GPUFault: e.GPUFault,
		MatchedUserLog: clip(m.UserLog, maxMatched), MatchedPlatformLog: clip(m.PlatformLog, maxMatched)}
	r.UserLog, r.userAt = excerpt(e.UserLog, m.UserLogAt, maxUserLines)
	r.PlatformLog, r.platformAt = excerpt(e.PlatformLog, m.PlatformLogAt, maxPlatformLines)
	return r
}
