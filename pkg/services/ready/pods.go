package ready

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/runtime/rules"
)

const (
	// startPatience is how long the creation of a pod's containers may take before the pod's events are read.
	startPatience = 3 * time.Second
	// probePatience is how long a container may run without being ready before a problem is reported.
	probePatience = 10 * time.Second
	// pullPatience is how long a registry may be unreachable before the problem counts as final.
	pullPatience = time.Minute
	// crashMemory is how long a crash counts as recent.
	crashMemory = 10 * time.Minute
	// crashesFinal is the number of crashes after which the problem is final. killsFinal is the same limit for crashes because of insufficient memory.
	crashesFinal = 3
	killsFinal   = 2
)

// podOf returns the suspected problems of a pod, or nil if the pod works.
func (s *snapshot) podOf(p *corev1.Pod, group string) []suspicion {
	if p.DeletionTimestamp != nil || podReady(p) || p.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	if name, bad := s.onBadNode(p); bad {
		return []suspicion{s.badNode(name)}
	}
	tell := func(p Problem) []suspicion { return []suspicion{{Problem: p, group: group}} }
	me := object(kindPod, p.Name)
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" {
		return tell(Problem{Object: me, Reason: p.Status.Reason, Message: fmt.Sprintf("the node ended it: %s", p.Status.Message), Hint: evictedHint(p)})
	}
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return tell(unschedulable(p, c.Message, s.roomComing(p)))
	}
	for _, cs := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if found, ok := s.containerOf(p, cs, group); ok {
			return []suspicion{found}
		}
	}
	return s.starting(p, group)
}

// containerOf returns the suspected problem of a container, and reports whether it exists.
func (s *snapshot) containerOf(p *corev1.Pod, cs corev1.ContainerStatus, group string) (suspicion, bool) {
	out := suspicion{group: group}
	switch w, t := cs.State.Waiting, cs.State.Terminated; {
	case w != nil && (w.Reason == "ImagePullBackOff" || w.Reason == "ErrImagePull"):
		out.Problem = s.pull(p, cs, w.Message)
		out.refine = func(ctx context.Context, found Problem, d details) (Problem, bool) {
			if innermost(w.Message) != w.Message {
				return found, true
			}
			if e, ok := firstEvent(d.events(ctx, reference(kindPod, p)), "Failed"); ok && strings.Contains(e.Message, cs.Image) {
				return s.pull(p, cs, e.Message), true
			}
			return found, true
		}
	case w != nil && waitingProblem(p, cs, &out.Problem):
	case w != nil && w.Reason == "CrashLoopBackOff", t != nil && !finished(p, cs), crashedLately(s.now, cs):
		return s.crash(p, cs, group)
	case cs.State.Running != nil && !cs.Ready && !isInit(p, cs.Name) && older(s.now, cs.State.Running.StartedAt.Time, probePatience):
		return probe(p, cs, group), true
	default:
		return out, false
	}
	return out, true
}

// waitingProblem sets the problem of a waiting container if the waiting reason is sufficient to explain the problem. waitingProblem reports whether
// it has set a problem.
func waitingProblem(p *corev1.Pod, cs corev1.ContainerStatus, out *Problem) bool {
	w := cs.State.Waiting
	*out = Problem{Object: object(kindPod, p.Name), Reason: w.Reason, Message: fmt.Sprintf("container %s: %s: %s", cs.Name, rules.Words(w.Reason), w.Message), Final: true}
	switch w.Reason {
	case "ErrImageNeverPull":
		out.Message = fmt.Sprintf("image %s is not on node %s, and pullPolicy Never forbids pulling it", cs.Image, p.Spec.NodeName)
		out.Hint = "load the bundle's images with: paictl cluster up; or change image.pullPolicy in the service's section"
	case "InvalidImageName":
		out.Message = fmt.Sprintf("container %s: %q is not an image name", cs.Name, cs.Image)
		out.Hint = "correct image.repository and image.tag in the service's section"
	case "CreateContainerConfigError":
		out.Message = fmt.Sprintf("container %s can't be set up: %s", cs.Name, w.Message)
		out.Hint = "it refers to something from the service's section, or from a service that isn't started; see: kubectl -n " + p.Namespace + " get secrets,configmaps"
	case "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError", "PreCreateHookError", "PreStartHookError":
		out.Message = fmt.Sprintf("container %s can't be started: %s", cs.Name, w.Message)
		out.Hint = "correct the command, the volumes or the limits in the service's section"
		if memoryTooLow(w.Message) {
			outOfMemory(p, cs, out)
		}
	case "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		out.Hint = "see the container runtime's log on node " + p.Spec.NodeName
	default:
		return false
	}
	return true
}

// pull returns the problem of an image that can't be pulled. If the registry is unreachable, the problem becomes final after pullPatience.
func (s *snapshot) pull(p *corev1.Pod, cs corev1.ContainerStatus, message string) Problem {
	out := Problem{Object: object(kindPod, p.Name), Reason: "ImagePullBackOff", Message: fmt.Sprintf("image %s can't be pulled", cs.Image), Final: true}
	cause := innermost(message)
	if cause != message {
		out.Message += ": " + strings.TrimPrefix(cause, cs.Image+": ")
	}
	switch {
	case containsAny(message, "dial tcp", "no such host", "timeout", "connection refused", "connection reset", "EOF", "unreachable", "deadline exceeded", "x509:", "tls:", "server misbehaving", "502 ", "503 ", "504 ", "429 "):
		out.Final = older(s.now, p.CreationTimestamp.Time, pullPatience)
		out.Hint = "the node can't reach the registry: check its network, name a mirror in docker-registry of services-configuration.yaml, or use the bundle's image (paictl image list)"
	case containsAny(message, "unauthorized", "denied", "forbidden", "authentication required", "authorization failed", "401 ", "403 "):
		out.Hint = "the registry refuses the credentials, or has no such image: correct docker-registry in services-configuration.yaml, then paictl config push"
	default:
		out.Hint = "correct image in the service's section; paictl image list lists the images, paictl image push pushes paictl's own programs to the registry"
	}
	return out
}

// crash returns the suspected problem of a container that should run but has exited.
func (s *snapshot) crash(p *corev1.Pod, cs corev1.ContainerStatus, group string) (suspicion, bool) {
	t, previous := cs.State.Terminated, false
	if t == nil {
		t, previous = cs.LastTerminationState.Terminated, cs.State.Running != nil
	}
	if t == nil {
		return suspicion{}, false
	}
	ends := int(cs.RestartCount)
	if cs.State.Running == nil {
		ends++
	}
	out := suspicion{group: group}
	out.Problem = Problem{
		Object: object(kindPod, p.Name), Reason: "CrashLoopBackOff", Final: ends >= crashesFinal,
		Message: fmt.Sprintf("container %s ended %s with %s", cs.Name, times(ends), exit(t)),
		Hint:    "its log says why: paictl service logs -n " + serviceOf(p),
	}
	if t.Reason == "OOMKilled" || memoryTooLow(t.Message) {
		outOfMemory(p, cs, &out.Problem)
		out.Message += ", " + times(ends)
		out.Final = ends >= killsFinal
	}
	out.refine = func(ctx context.Context, found Problem, d details) (Problem, bool) {
		found.Log = d.log(ctx, p, cs.Name, previous)
		if found.Reason == "OOMKilled" || t.ExitCode != 137 && t.ExitCode != 143 && t.ExitCode != 0 {
			return found, true
		}
		if e, ok := firstEvent(d.events(ctx, reference(kindPod, p)), "Unhealthy"); ok && containsAny(e.Message, "Liveness", "Startup") {
			found.Reason = "ProbeFailed"
			found.Message = fmt.Sprintf("container %s was restarted %s: %s", cs.Name, times(ends), e.Message)
		}
		return found, true
	}
	return out, true
}

func outOfMemory(p *corev1.Pod, cs corev1.ContainerStatus, out *Problem) {
	out.Reason = "OOMKilled"
	out.Message = fmt.Sprintf("container %s was killed at its memory limit of %s", cs.Name, memoryLimit(p, cs.Name))
	out.Hint = "raise resources.limits.memory in the section of " + serviceOf(p)
}

func memoryTooLow(message string) bool {
	return containsAny(message, "OOM-killed", "memory limit too low", "oom-kill")
}

func probe(p *corev1.Pod, cs corev1.ContainerStatus, group string) suspicion {
	out := suspicion{group: group, Problem: Problem{
		Object: object(kindPod, p.Name), Reason: "ProbeFailed",
		Hint: "it may need more time; if it doesn't become ready, its log says why: paictl service logs -n " + serviceOf(p),
	}}
	out.refine = func(ctx context.Context, found Problem, d details) (Problem, bool) {
		e, ok := firstEvent(d.events(ctx, reference(kindPod, p)), "Unhealthy")
		found.Message = fmt.Sprintf("container %s runs, but isn't ready: %s", cs.Name, e.Message)
		return found, ok
	}
	return out
}

// starting returns suspected problems that prevent the creation of a pod's containers. Most of these problems concern volumes.
func (s *snapshot) starting(p *corev1.Pod, group string) []suspicion {
	c := condition(p, corev1.PodScheduled)
	if p.Status.Phase != corev1.PodPending || c == nil || c.Status != corev1.ConditionTrue || !older(s.now, c.LastTransitionTime.Time, startPatience) {
		return nil
	}
	out := suspicion{group: group, Problem: Problem{Object: object(kindPod, p.Name), Reason: "FailedMount"}}
	out.refine = func(ctx context.Context, found Problem, d details) (Problem, bool) {
		e, ok := firstEvent(d.events(ctx, reference(kindPod, p)), "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "NetworkNotReady")
		if !ok {
			return found, false
		}
		if strings.HasSuffix(e.Message, " not registered") {
			return found, false // the kubelet doesn't know an object that it mounts yet, and requests it again within seconds
		}
		found.Reason, found.Message = e.Reason, rules.Words(e.Reason)+": "+e.Message
		switch {
		case e.Reason == "FailedCreatePodSandBox" || e.Reason == "NetworkNotReady":
			found.Hint = "the node's container runtime or network has a problem; see: paictl cluster status"
		case containsAny(e.Message, "secret ", "configmap ") && strings.Contains(e.Message, "not found"):
			found.Final = true
			found.Hint = "it refers to something from the service's section, or from a service that isn't started"
		default:
			found.Final = containsAny(e.Message, "type check failed", "does not exist", "no such file")
			found.Hint = "the volume can't be attached to node " + p.Spec.NodeName + "; see: kubectl -n " + p.Namespace + " describe pod " + p.Name
		}
		return found, true
	}
	return []suspicion{out}
}
