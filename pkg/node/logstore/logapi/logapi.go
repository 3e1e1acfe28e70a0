// Package logapi defines the API between the agents that keep logs and their clients.
//
//	GET /v1/logs/{uid}/{container}?offset=&tail=&since=&match=&stream=&times=&wait=
//	GET /v1/use
//
// In: nothing. Out: names. The response to the first request is a page of a log. Each line of the page begins with its time unless times is false.
// The page begins at a position (offset) or at a time (since), or contains the last lines (tail). For example, since=10m means ten minutes ago.
// match is a regular expression that selects lines. stream selects the lines of stdout or stderr. wait is how long the response may wait for lines.
// Headers contain the start of the next page and the missing ranges. The response to the second request is a list of Use, which is the current
// resource use of the containers of jobs.
package logapi

import "errors"

var (
	// ErrNoAgent means that the machine has no agent. The logs of the machine aren't stored.
	ErrNoAgent = errors.New(NoAgent)
	// ErrNoLog means that the machine doesn't store the log of the container.
	ErrNoLog = errors.New("the machine keeps no log of it")
	// ErrAway means that the machine's agent doesn't respond, because the agent is being replaced or is unreachable. The caller retries, or treats the
	// log as possibly incomplete.
	ErrAway = errors.New("the agent that keeps the logs of this machine doesn't answer now")
	// ErrUnmeasured means that the machine's containers aren't measured. The machine has no agent, or the agent is too old.
	ErrUnmeasured = errors.New("nothing measures the containers of this machine")
)

// Use is the resource use of a container.
type Use struct {
	Pod string `json:"pod"` // its UID
	// Container is the ID of the container in the container runtime.
	Container string `json:"container"`
	// CPU is the number of cores in use. CPU is nil if the container has just started.
	CPU *float64 `json:"cpu"`
	// Memory is the used memory in bytes. Memory doesn't include file caches that weren't used recently.
	Memory int64 `json:"memoryBytes"`
}

// UsePath is the path of requests for the containers' resource use.
const UsePath = "/v1/use"

const (
	// Service is the name of the agents' DaemonSet. Service is also the value of the label app.kubernetes.io/name on the agents' pods.
	Service = "log-manager"
	// PortName is the name of the port of the agent's container.
	PortName = "http"
	// TokenSecret is the name of the Secret with the token for signing requests.
	TokenSecret = "log-manager-token"
	// TokenKey is the key of the token in TokenSecret.
	TokenKey = "token"
	// NoAgent is the message in the job controller's response if a machine has no agent.
	NoAgent = "no agent keeps the logs of this machine"
)

// Headers of a response. All values are numbers.
const (
	HeaderStart = "X-Pai-Log-Start" // the position of the first kept byte of the log: the size of the dropped part before it
	HeaderNext  = "X-Pai-Log-Next"  // the start of the next page
	HeaderEnd   = "X-Pai-Log-End"
	HeaderGaps  = "X-Pai-Log-Gaps"  // places at which lines are missing
	HeaderLimit = "X-Pai-Log-Limit" // the number of bytes of a log that are kept
)

// Headers returns the names of all headers.
func Headers() []string {
	return []string{HeaderStart, HeaderNext, HeaderEnd, HeaderGaps, HeaderLimit}
}

// Path returns the path of a container's log.
func Path(uid, container string) string { return "/v1/logs/" + uid + "/" + container }
