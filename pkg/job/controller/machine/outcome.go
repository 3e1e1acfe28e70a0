package machine

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Codes that the controller itself assigns. The numbers come from FrameworkController, except codePodDrained, CodeInvalid, CodeDependency and
// CodeRestart.
const (
	CodeConfigMapDeleted     = -100
	CodePodDeleted           = -101
	codePodDrained           = -102
	CodePodNotSeen           = -111
	CodePodCreationPermanent = -200
	CodeInvalid              = -201
	CodeDependency           = -202
	CodeStopped              = -210
	CodeAttemptCompletion    = -220
	CodeTaskDeleted          = -230
	CodeRestart              = v1.CodeRestart
	CodePodCreationUnknown   = -310
	// Kubernetes or another program removed the pod.
	codePodEvicted   = -1000
	codePodNodeLost  = -1001
	codePodPreempted = v1.CodePreempted
)

// AboveLimit matches the API server's message that a container requests more than a LimitRange of the namespace allows. Its groups are the
// resource, the maximum, and the request. The API server rejects the pod until the LimitRange or the request changes.
var AboveLimit = regexp.MustCompile(`maximum (\S+) usage per \S+ is ([^\s,]+), but (?:limit|request) is ([^\s,\]]+)`)

// own contains the outcomes of the controller's own codes. They don't come from the failure rules, because an administrator must not change how
// the controller itself retries.
var own = map[int32]Outcome{
	0:                        {Phrase: "Succeeded"},
	CodeConfigMapDeleted:     {Phrase: "ConfigMapExternalDeleted", Attributes: transient, Reason: "Someone deleted the ConfigMap of the attempt."},
	CodePodDeleted:           {Phrase: "PodExternalDeleted", Attributes: transient, Reason: "Someone deleted the pod."},
	codePodDrained:           {Phrase: "PodDrained", Attributes: transient, Reason: "The machine of the task was drained."},
	CodePodNotSeen:           {Phrase: "PodLocalCacheCreationTimeout", Attributes: transient, Reason: "The pod was created, but never seen."},
	CodePodCreationPermanent: {Phrase: "PodCreationPermanentError", Attributes: permanent, Reason: "The API server refuses the pod."},
	CodeInvalid:              {Phrase: "FrameworkInvalid", Attributes: permanent, Reason: "The job can't be run as it was submitted."},
	CodeDependency:           {Phrase: "DependencyFailed", Attributes: permanent, Reason: "A job that had to succeed first did not."},
	CodeStopped:              {Phrase: "StopFrameworkRequested", Attributes: permanent, Reason: ReasonStopped},
	CodeAttemptCompletion:    {Phrase: "FrameworkAttemptCompletion", Attributes: permanent, Reason: "The job's attempt ended before this task finished."},
	CodeTaskDeleted:          {Phrase: "DeleteTaskRequested", Attributes: permanent, Reason: "The job was scaled down."},
	CodeRestart:              {Phrase: "RestartRequested", Attributes: transient, Reason: ReasonRestart},
	CodePodCreationUnknown:   {Phrase: "PodCreationUnknownError", Reason: "The API server doesn't create the pod."},
}

var (
	transient = []v1.CompletionTypeAttribute{v1.Transient}
	permanent = []v1.CompletionTypeAttribute{v1.Permanent}
)

// outcome returns the outcome for a completion code.
func (s *step) outcome(code int32) Outcome {
	if o, ok := own[code]; ok {
		o.Code = code
		return o
	}
	return s.Rules.Code(code)
}

func completion(o Outcome, more string) *v1.CompletionStatus {
	t := v1.CompletionType{Name: v1.Failed, Attributes: o.Attributes}
	if o.Code == 0 {
		t.Name = v1.Succeeded
	}
	if t.Attributes == nil {
		t.Attributes = []v1.CompletionTypeAttribute{}
	}
	diagnostics := strings.TrimSpace(o.Reason + " " + more)
	return &v1.CompletionStatus{Code: o.Code, Phrase: o.Phrase, Type: t, Diagnostics: clip(diagnostics, maxDiagnostics)}
}

// ReasonStopped is the beginning of the diagnostics of a stopped job. If the alert handler stopped the job, the handler's reason follows.
const ReasonStopped = "The job was stopped."

// ReasonRestart is the beginning of the diagnostics of an attempt that ended because another attempt was requested. If the alert handler
// requested it, the handler's reason follows.
const ReasonRestart = "Another attempt was requested."

// Limits of strings in a status. With them, a hundred failed tasks fit into one object.
const (
	maxDiagnostics = 1024
	maxMessage     = 4096 // the kubelet's own limit
)

// clip cuts a text to at most limit bytes, without splitting a character.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// ended returns the outcome of a pod that ended by itself. It returns false if the pod hasn't ended, or if the pod failed only because it was
// being removed. Such a failure doesn't show whether the job failed.
func (s *step) ended(p *corev1.Pod) (Outcome, bool) {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return s.outcome(0), true
	case corev1.PodFailed:
		if disruption(p) != nil || p.DeletionTimestamp != nil && !lastEnd(p).Before(deletionAsked(p)) {
			return Outcome{}, false
		}
		return s.Rules.Failed(p), true
	}
	return Outcome{}, false
}

// disruption returns the condition that says why another program removes the pod, or nil.
func disruption(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// deletionAsked returns when the deletion of the pod was requested.
func deletionAsked(p *corev1.Pod) time.Time {
	at := p.DeletionTimestamp.Time
	if p.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return at
}

// taken returns the outcome of a pod that another program removes. The pod's condition shows which program removes it and why.
func (s *step) taken(p *corev1.Pod) (o Outcome, why string) {
	c := disruption(p)
	if c == nil {
		return s.outcome(CodePodDeleted), ""
	}
	code := int32(CodePodDeleted)
	switch c.Reason {
	case "DeletionByTaintManager", "DeletionByPodGC":
		code = codePodNodeLost
	case "EvictionByEvictionAPI": // its message names only the API
		return s.outcome(codePodDrained), ""
	case corev1.PodReasonTerminationByKubelet:
		if p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" { // an eviction, a shutdown of the node, or preemption by a critical pod
			o = s.Rules.Failed(p)
			o.NodeFault = true
			return o, c.Message
		}
		code = codePodEvicted
	case corev1.PodReasonPreemptionByScheduler:
		code = codePodPreempted
	}
	o = s.outcome(code)
	o.NodeFault = code == codePodNodeLost || c.Reason == corev1.PodReasonTerminationByKubelet
	return o, c.Message
}

// lastEnd returns when the last container of a pod ended, or zero if no container ran.
func lastEnd(p *corev1.Pod) time.Time {
	var last time.Time
	for _, c := range containers(p) {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// firstStart returns when the first of the pod's containers began, apart from init containers, or zero if none has begun.
func firstStart(p *corev1.Pod) time.Time {
	var first time.Time
	for _, c := range p.Status.ContainerStatuses {
		var at time.Time
		switch {
		case c.State.Running != nil:
			at = c.State.Running.StartedAt.Time
		case c.State.Terminated != nil:
			at = c.State.Terminated.StartedAt.Time
		}
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func containers(p *corev1.Pod) []corev1.ContainerStatus {
	if len(p.Status.InitContainerStatuses) == 0 {
		return p.Status.ContainerStatuses
	}
	all := make([]corev1.ContainerStatus, 0, len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses))
	return append(append(all, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...)
}

// told returns how the containers of a pod ended. The messages of containers that succeeded are left out.
func told(p *corev1.Pod) *v1.PodCompletionStatus {
	out := &v1.PodCompletionStatus{Reason: p.Status.Reason, Message: clip(p.Status.Message, maxMessage)}
	for _, c := range containers(p) {
		t := c.State.Terminated
		if t == nil {
			continue
		}
		one := v1.ContainerCompletionStatus{Name: c.Name, Reason: t.Reason, Signal: t.Signal, Code: t.ExitCode}
		if t.ExitCode != 0 {
			one.Message = clip(t.Message, maxMessage)
		}
		out.Containers = append(out.Containers, one)
	}
	return out
}
