// Package rules interprets a failed task: it maps its exit code, the ends of its logs and the state
// of its GPUs to a code with a phrase, whose fault it is, whether a retry may help, and what to do.
// In: a set of rules in OpenPAI's format (the built-in one, or an administrator's). Out: a Match.
// It imports no package of Kubernetes, because the job runtime includes it.
package rules

// Rule is one entry in a set of rules. It describes one code.
type Rule struct {
	Code     int      `yaml:"code" json:"code"`
	Phrase   string   `yaml:"phrase" json:"phrase"`
	Issuer   string   `yaml:"issuer,omitempty" json:"issuer"`
	Causer   string   `yaml:"causer,omitempty" json:"causer"`
	Type     string   `yaml:"type,omitempty" json:"type"`
	Stage    string   `yaml:"stage,omitempty" json:"stage"`
	Behavior string   `yaml:"behavior,omitempty" json:"behavior"`
	Reaction string   `yaml:"reaction,omitempty" json:"reaction"`
	Reason   string   `yaml:"reason,omitempty" json:"reason,omitempty"`
	Repro    []string `yaml:"repro,omitempty" json:"repro,omitempty"`
	Solution []string `yaml:"solution,omitempty" json:"solution,omitempty"`
	Pattern  Pattern  `yaml:"pattern,omitempty" json:"pattern,omitzero"`
}

// Pattern defines when a code applies. The code applies if any pattern in the lists matches.
type Pattern struct {
	// Runtime lists patterns for codes from 1 to 255. The runtime matches them in the task's container.
	Runtime []RuntimePattern `yaml:"runtimeContainerPatterns,omitempty" json:"runtimeContainerPatterns,omitempty"`
	// Pod lists patterns that the controller matches. A rule without such patterns matches a container that exits with the
	// rule's code.
	Pod []PodPattern `yaml:"controllerPodPatterns,omitempty" json:"controllerPodPatterns,omitempty"`
}

// RuntimePattern matches if all its conditions match.
type RuntimePattern struct {
	ExitCode    *int     `yaml:"exitCode,omitempty" json:"exitCode,omitempty"`
	UserLog     string   `yaml:"userLogRegex,omitempty" json:"userLogRegex,omitempty"`
	PlatformLog string   `yaml:"platformLogRegex,omitempty" json:"platformLogRegex,omitempty"`
	GPU         *GPUInfo `yaml:"gpuInfo,omitempty" json:"gpuInfo,omitempty"`
	// GPUFault matches if the machine's agent reports that a GPU of the task is faulty.
	GPUFault *bool `yaml:"gpuFault,omitempty" json:"gpuFault,omitempty"`
	// OOMKilled matches if the kernel killed a process of the container because memory was exhausted.
	OOMKilled *bool `yaml:"oomKilled,omitempty" json:"oomKilled,omitempty"`
	// LastLines is the number of lines at the end of the log that are searched. 0 means the whole log. The cause of a failure
	// is usually near the end of the log. A warning from hours ago isn't the cause.
	LastLines int `yaml:"lastLines,omitempty" json:"lastLines,omitempty"`
	// ErrorLine ignores matches on lines that are marked as warning, information or debug output.
	ErrorLine bool `yaml:"errorLine,omitempty" json:"errorLine,omitempty"`
}

// GPUInfo is the driver's report about the task's GPUs.
type GPUInfo struct {
	NvidiaDoubleEccError bool `yaml:"nvidiaDoubleEccError" json:"nvidiaDoubleEccError"`
}

// PodPattern matches if all its conditions match. For each entry of Containers, at least one container must match.
type PodPattern struct {
	Reason     string             `yaml:"reasonRegex,omitempty" json:"reasonRegex,omitempty"`
	Message    string             `yaml:"messageRegex,omitempty" json:"messageRegex,omitempty"`
	Containers []ContainerPattern `yaml:"containers,omitempty" json:"containers,omitempty"`
}

// ContainerPattern matches a terminated container. Without an exit code, it matches only failed containers.
type ContainerPattern struct {
	Name     string `yaml:"nameRegex,omitempty" json:"nameRegex,omitempty"`
	Reason   string `yaml:"reasonRegex,omitempty" json:"reasonRegex,omitempty"`
	Message  string `yaml:"messageRegex,omitempty" json:"messageRegex,omitempty"`
	ExitCode *int   `yaml:"exitCode,omitempty" json:"exitCode,omitempty"`
}

// Codes that other packages use.
const (
	CodeSucceeded         = 0
	CodeConfigMapDeleted  = -100
	CodePodDeleted        = -101
	CodeConfigMapTimeout  = -110
	CodePodTimeout        = -111
	CodePodTransient      = -120
	CodePodPermanent      = -200
	CodeStopped           = -210
	CodeAttemptCompletion = -220
	CodeTaskDeleted       = -230
	CodeNoFailedContainer = -300
	CodePodUnknown        = -310
	CodeTransient         = 200 // a container requests a retry
	CodeConflict          = 201 // a container requests a later retry
	CodePermanent         = 210 // a container requests that there is no retry
	CodeSetupFailed       = 247 // the code, a plugin or another preparation of the runtime
	CodeSSHBarrier        = 249
	CodeBarrierTransient  = 250
	CodeGangTimeout       = 251
	CodeBarrierPermanent  = 252
	CodePortConflict      = 253
	CodeImageMissing      = 254
	CodeUnknown           = 255
	CodeAbnormal          = 256   // stands for any other positive code
	CodeUndefinedNegative = -8000 // stands for any other negative code
)

// Values of behavior, reaction and type that this package uses.
const (
	behaviorTransient = "TRANSIENT"
	behaviorConflict  = "TRANSIENT_CONFLICT"
	behaviorPermanent = "PERMANENT"
	behaviorUnknown   = "UNKNOWN"
	reactionRetry     = "ALWAYS_RETRY"
	reactionBackoff   = "ALWAYS_BACKOFF_RETRY"
	reactionMax       = "RETRY_TO_MAX"
	reactionNever     = "NEVER_RETRY"
	typeUnknown       = "UNKNOWN_FAILURE"
	unknown           = "UNKNOWN"
)

const (
	lowestCode                = CodeUndefinedNegative
	highestExitCode           = 255
	reservedLow, reservedHigh = 200, 219 // the controller's contract with containers
	phraseUnrecognized        = "ContainerUnrecognizedFailed"
)

// Attributes returns the attributes of the Framework's completion type that control retries: Transient, Conflict and Permanent.
func (r Rule) Attributes() []string {
	switch r.Behavior {
	case behaviorTransient:
		return []string{"Transient"}
	case behaviorConflict:
		return []string{"Transient", "Conflict"}
	case behaviorPermanent:
		return []string{"Permanent"}
	}
	return []string{}
}

// contract maps exit codes to actions that a container requests from the controller. All sets of rules share these codes.
var contract = map[int]Rule{
	CodeTransient: {Code: CodeTransient, Phrase: "ContainerTransientFailed", Issuer: "USER_CONTAINER", Causer: unknown, Type: typeUnknown,
		Stage: "RUNNING", Behavior: behaviorTransient, Reaction: reactionRetry, Reason: "The container asks to be started again",
		Solution: []string{"Wait: the task is started again"}},
	CodeConflict: {Code: CodeConflict, Phrase: "ContainerTransientConflictFailed", Issuer: "USER_CONTAINER", Causer: unknown, Type: typeUnknown,
		Stage: "RUNNING", Behavior: behaviorConflict, Reaction: reactionBackoff, Reason: "The container asks to be started again later",
		Solution: []string{"Wait: the task is started again later"}},
	CodePermanent: {Code: CodePermanent, Phrase: "ContainerPermanentFailed", Issuer: "USER_CONTAINER", Causer: unknown, Type: typeUnknown,
		Stage: "RUNNING", Behavior: behaviorPermanent, Reaction: reactionNever, Reason: "The container asks not to be started again",
		Solution: []string{"Look at the end of the log"}},
}
