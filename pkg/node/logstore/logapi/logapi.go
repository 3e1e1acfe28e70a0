// Package logapi defines the API between the agents that keep logs and their clients.
//
//	GET /v1/logs/{uid}/{container}?offset=&tail=&since=&match=&stream=&times=&wait=
//	GET /v1/use
//
// In: nothing. Out: names. The response to the first request is a page of a log: lines, each with its time before it unless times is
// false. The page begins at a position (offset), with the last lines (tail), or at a time that long ago (since: 10m). match is a regular
// expression, and selects matching lines; stream selects the lines of stdout or of stderr. wait is how long the response may wait for
// lines. Headers contain the start of the next page and the missing ranges. The response to the second request is a list of Use: the
// current resource use of the containers of jobs.
package logapi

import "errors"

var (
	// ErrNoAgent is the error for a machine whose logs aren't stored.
	ErrNoAgent = errors.New(NoAgent)
	// ErrNoLog is the error for a container whose log the machine doesn't have.
	ErrNoLog = errors.New("the machine keeps no log of it")
	// ErrAway is the error for a machine whose agent doesn't respond now: it is being replaced, or can't be reached.
	// The caller retries, or treats the log as possibly incomplete.
	ErrAway = errors.New("the agent that keeps the logs of this machine doesn't answer now")
	// ErrUnmeasured is the error for a machine whose containers aren't measured, because its agent is older or it has
	// no agent.
	ErrUnmeasured = errors.New("nothing measures the containers of this machine")
)

// Use is the resource use of a container.
type Use struct {
	Pod string `json:"pod"` // its UID
	// Container is its id in the container runtime.
	Container string `json:"container"`
	// CPU is in cores; nil if the container has just started.
	CPU *float64 `json:"cpu"`
	// Memory is in bytes, without file caches that weren't used recently.
	Memory int64 `json:"memoryBytes"`
}

// UsePath is the path of requests for resource use.
const UsePath = "/v1/use"

const (
	// Service is the DaemonSet of the agents, and the value of app.kubernetes.io/name on its pods.
	Service = "log-manager"
	// PortName is the name of an agent's container port.
	PortName = "http"
	// TokenSecret holds the token for signing requests, under TokenKey.
	TokenSecret = "log-manager-token"
	// TokenKey is the key in that Secret.
	TokenKey = "token"
	// NoAgent is in the job controller's response if a machine has no agent.
	NoAgent = "no agent keeps the logs of this machine"
)

// These are the headers of a response. All their values are numbers.
const (
	HeaderStart = "X-Pai-Log-Start" // the position of the first kept byte of the log: the size of the dropped part before it
	HeaderNext  = "X-Pai-Log-Next"  // the start of the next page
	HeaderEnd   = "X-Pai-Log-End"
	HeaderGaps  = "X-Pai-Log-Gaps"  // places at which lines are missing
	HeaderLimit = "X-Pai-Log-Limit" // the number of bytes of a log that are kept
)

// Headers returns all headers.
func Headers() []string {
	return []string{HeaderStart, HeaderNext, HeaderEnd, HeaderGaps, HeaderLimit}
}

// Path returns the path of the log of a container.
func Path(uid, container string) string { return "/v1/logs/" + uid + "/" + container }
