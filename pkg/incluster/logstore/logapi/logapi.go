// Package logapi is what the agents that keep logs and those who ask them agree on.
//
//	GET /v1/logs/{uid}/{container}?offset=&tail=&since=&match=&stream=&times=&wait=
//	GET /v1/use
//
// In: nothing. Out: names. An answer is a page of a log: lines, each with its time before it unless times
// is false, from a place (offset), of the last lines (tail) or of a time that has passed (since: 10m). Of
// lines of which match is given, a regular expression, only those that it fits; with stream only those of
// stdout or of stderr. wait is how long the answer may wait for lines. Headers say where the next page begins and what is missing.
// The answer about use is a list of Use: what the containers of jobs use now.
package logapi

import "errors"

var (
	// ErrNoAgent is a machine whose logs aren't kept.
	ErrNoAgent = errors.New(NoAgent)
	// ErrNoLog is a container of which the machine has no log.
	ErrNoLog = errors.New("the machine keeps no log of it")
	// ErrAway is a machine whose agent doesn't answer now: it is being renewed, or is cut off. Who asks tries again,
	// or knows that there may be more.
	ErrAway = errors.New("the agent that keeps the logs of this machine doesn't answer now")
	// ErrUnmeasured is a machine on which nothing measures what containers use: its agent is older, or there is none.
	ErrUnmeasured = errors.New("nothing measures the containers of this machine")
)

// Use is what a container uses.
type Use struct {
	Pod string `json:"pod"` // its UID
	// Container is the container runtime's id of it.
	Container string `json:"container"`
	// CPU are cores; nil where the container has just started.
	CPU *float64 `json:"cpu"`
	// Memory are bytes, without files that weren't used lately.
	Memory int64 `json:"memoryBytes"`
}

// UsePath is where it is asked for.
const UsePath = "/v1/use"

const (
	// Service is the DaemonSet of the agents, and the value of app.kubernetes.io/name on its pods.
	Service = "log-manager"
	// PortName is that of the container port on which an agent answers.
	PortName = "http"
	// TokenSecret holds the token with which requests are signed, under TokenKey.
	TokenSecret = "log-manager-token"
	// TokenKey is the key in it.
	TokenKey = "token"
	// NoAgent is in the answer of the job controller where a machine has no agent.
	NoAgent = "no agent keeps the logs of this machine"
)

// Headers of an answer, all of them numbers.
const (
	HeaderStart = "X-Pai-Log-Start" // first byte of the log that is kept: how much was dropped before it
	HeaderNext  = "X-Pai-Log-Next"  // where the next page begins
	HeaderEnd   = "X-Pai-Log-End"
	HeaderGaps  = "X-Pai-Log-Gaps"  // places at which lines are missing
	HeaderLimit = "X-Pai-Log-Limit" // bytes that are kept of a log
)

// Headers are all of them.
func Headers() []string {
	return []string{HeaderStart, HeaderNext, HeaderEnd, HeaderGaps, HeaderLimit}
}

// Path is where the log of a container is.
func Path(uid, container string) string { return "/v1/logs/" + uid + "/" + container }
