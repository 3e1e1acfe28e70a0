package ready

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/runtime/rules"
)

// createPatience is how long a controller may take to create a pod before the controller's events are read.
const createPatience = 2 * time.Second

const revisionAnnotation = "deployment.kubernetes.io/revision"

// deployment judges a Deployment. A Deployment is ready if the pods of its newest revision are ready and pods of older revisions no longer exist. The
// status counts only after the controller has observed the current specification.
func (s *snapshot) deployment(t target) verdict {
	d, ok := find(s.deployments, t.namespace, t.name)
	if !ok {
		return missing(t)
	}
	desired := orOne(d.Spec.Replicas)
	seen := d.Status.ObservedGeneration >= d.Generation
	var pods []*corev1.Pod
	var newest *appsv1.ReplicaSet
	for _, r := range s.replicaSets {
		if metav1.IsControlledBy(r, d) && seen && r.Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
			newest, pods = r, s.byOwner[r.UID]
		}
	}
	out := s.ofPods(t, pods, desired)
	st := d.Status
	out.ready = seen && st.UpdatedReplicas >= desired && st.Replicas <= st.UpdatedReplicas && st.AvailableReplicas >= desired
	if out.ready || !seen || len(out.found) > 0 {
		return out
	}
	for _, c := range st.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			out.found = append(out.found, suspicion{group: t.String(), Problem: notCreated(t, c.Message)})
			return out
		}
	}
	for _, c := range st.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			out.found = append(out.found, suspicion{group: t.String(), Problem: Problem{
				Object: t.String(), Reason: "Stalled", Message: c.Message, Final: true, Hint: "see: kubectl -n " + t.namespace + " describe deployment " + t.name,
			}})
		}
	}
	if newest != nil && len(pods) < int(desired) {
		out.found = append(out.found, s.uncreated(t, kindReplicaSet, newest)...)
	}
	return out
}

// statefulSet judges a StatefulSet. A StatefulSet is ready if all pods are ready. With automatic updates, the pods must also have the newest
// revision.
func (s *snapshot) statefulSet(t target) verdict {
	d, ok := find(s.statefulSets, t.namespace, t.name)
	if !ok {
		return missing(t)
	}
	desired, st := orOne(d.Spec.Replicas), d.Status
	seen := st.ObservedGeneration >= d.Generation
	var current, old []*corev1.Pod
	for _, p := range s.byOwner[d.UID] {
		if st.UpdateRevision == "" || p.Labels[appsv1.ControllerRevisionHashLabelKey] == st.UpdateRevision {
			current = append(current, p)
		} else {
			old = append(old, p)
		}
	}
	rolls := d.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	keep := int32(0) // pods that a partition doesn't update
	if u := d.Spec.UpdateStrategy.RollingUpdate; rolls && u != nil && u.Partition != nil {
		keep = min(*u.Partition, desired)
	}
	if !rolls || keep > 0 {
		current, old = append(current, old...), nil
	}
	out := s.ofPods(t, current, desired)
	out.found = append(out.found, s.stuck(t, d, old)...)
	out.ready = seen && st.ReadyReplicas >= desired && st.Replicas == desired && (!rolls || st.UpdatedReplicas >= desired-keep)
	if !out.ready && seen && len(out.found) == 0 && len(active(s.byOwner[d.UID])) < int(desired) {
		out.found = s.uncreated(t, kindStatefulSet, d)
	}
	return out
}

// stuck returns the problems of pods of the old revision. A StatefulSet with ordered updates never replaces a broken old pod.
func (s *snapshot) stuck(t target, d *appsv1.StatefulSet, old []*corev1.Pod) []suspicion {
	if d.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return nil
	}
	var out []suspicion
	for _, p := range old {
		for _, f := range s.podOf(p, t.String()) {
			f.Message = "it belongs to the old revision, and Kubernetes replaces it only when it works: " + f.Message
			f.Hint = "delete it, so that the new revision replaces it: kubectl -n " + p.Namespace + " delete pod " + p.Name
			f.refine = nil
			out = append(out, f)
		}
	}
	return out
}

// daemonSet judges a DaemonSet. A DaemonSet is ready if its pods are ready on all selected nodes that respond. Nodes that don't respond are only
// reported.
func (s *snapshot) daemonSet(t target) verdict {
	d, ok := find(s.daemonSets, t.namespace, t.name)
	if !ok {
		return missing(t)
	}
	st := d.Status
	seen := st.ObservedGeneration >= d.Generation
	newest := s.newestRevision(d)
	var current, away []*corev1.Pod
	good := true
	pods := active(s.byOwner[d.UID])
	for _, p := range pods {
		switch _, bad := s.onBadNode(p); {
		case bad:
			away = append(away, p)
		case newest != "" && p.Labels[appsv1.ControllerRevisionHashLabelKey] != newest && rollsOut(d):
			good = false
		default:
			current, good = append(current, p), good && podReady(p)
		}
	}
	out := s.ofPods(t, append(current, away...), st.DesiredNumberScheduled)
	out.ready = seen && good && st.DesiredNumberScheduled > 0 && len(current)+len(away) >= int(st.DesiredNumberScheduled)
	if out.ready || !seen {
		return out
	}
	if st.DesiredNumberScheduled == 0 {
		out.found = []suspicion{{group: t.String(), Problem: noNode(t, d)}}
	} else if len(pods) < int(st.DesiredNumberScheduled) {
		out.found = append(out.found, s.uncreated(t, kindDaemonSet, d)...)
	}
	return out
}

func rollsOut(d *appsv1.DaemonSet) bool {
	return d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
}

// newestRevision returns the revision hash of pods with the current template, or "".
func (s *snapshot) newestRevision(d *appsv1.DaemonSet) string {
	number, hash := int64(-1), ""
	for _, r := range s.revisions {
		if metav1.IsControlledBy(r, d) && r.Revision > number {
			number, hash = r.Revision, r.Labels[appsv1.ControllerRevisionHashLabelKey]
		}
	}
	return hash
}

func noNode(t target, d *appsv1.DaemonSet) Problem {
	out := Problem{Object: t.String(), Reason: "NoNode", Final: true, Message: "no node accepts its pods"}
	if labels := wanted(d.Spec.Template.Spec.NodeSelector, d.Spec.Template.Spec.Affinity); labels != "" {
		out.Message = "no node has the label " + labels + ", or those that do have a taint or are cordoned"
	}
	out.Hint = remedyPlacement
	return out
}

// job judges a Job. A Job is ready when it is complete. A Job that deletes itself may no longer exist.
func (s *snapshot) job(t target) verdict {
	j, ok := find(s.jobs, t.namespace, t.name)
	switch {
	case !ok && t.passing:
		return verdict{ready: true}
	case !ok:
		return missing(t)
	}
	out := verdict{pods: int(orOne(j.Spec.Completions)), readyPods: int(j.Status.Succeeded)}
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			out.ready = true
			return out
		case c.Type == batchv1.JobFailed:
			out.found = []suspicion{s.failedJob(t, j, c)}
			return out
		}
	}
	for _, p := range s.byOwner[j.UID] {
		out.found = append(out.found, s.podOf(p, t.String())...)
	}
	if len(out.found) == 0 && j.Status.Active == 0 && (j.Spec.Suspend == nil || !*j.Spec.Suspend) {
		out.found = s.uncreated(t, kindJob, j)
	}
	return out
}

func (s *snapshot) failedJob(t target, j *batchv1.Job, c batchv1.JobCondition) suspicion {
	out := suspicion{group: t.String(), Problem: Problem{
		Object: t.String(), Reason: "JobFailed", Final: true, Message: strings.TrimSuffix("it failed: "+rules.Words(c.Reason)+": "+c.Message, ": "),
		Hint: "remove the cause, then start it again: kubectl -n " + t.namespace + " delete job " + t.name + " && paictl service start",
	}}
	var last *corev1.Pod
	for _, p := range s.byOwner[j.UID] {
		if p.Status.Phase == corev1.PodFailed && (last == nil || p.CreationTimestamp.After(last.CreationTimestamp.Time)) {
			last = p
		}
	}
	if last == nil {
		return out
	}
	for _, cs := range last.Status.ContainerStatuses {
		if end := cs.State.Terminated; end != nil && end.ExitCode != 0 {
			out.Message += fmt.Sprintf("; container %s ended with %s", cs.Name, exit(end))
			out.refine = func(ctx context.Context, p Problem, d details) (Problem, bool) {
				p.Log = d.log(ctx, last, cs.Name, false)
				return p, true
			}
			break
		}
	}
	return out
}

// uncreated returns a suspicion if a controller has created no pods within createPatience. The controller's events explain the reason.
func (s *snapshot) uncreated(t target, kind string, o metav1.Object) []suspicion {
	if !older(s.now, o.GetCreationTimestamp().Time, createPatience) {
		return nil
	}
	return []suspicion{{
		group: t.String(), Problem: Problem{Object: t.String(), Reason: "FailedCreate"},
		refine: func(ctx context.Context, p Problem, d details) (Problem, bool) {
			e, ok := firstEvent(d.events(ctx, reference(kind, o)), "FailedCreate")
			if !ok {
				return p, false
			}
			return notCreated(t, e.Message), true
		},
	}}
}

var creating = regexp.MustCompile(`^(Error creating: |create Pod \S+ in StatefulSet \S+ failed error: )`)

// exceededQuota is the API server's message about a quota, without the prefix with the pod's name.
const exceededQuota = "exceeded quota"

func notCreated(t target, message string) Problem {
	message = creating.ReplaceAllString(message, "")
	p := Problem{Object: t.String(), Reason: "FailedCreate", Message: "no pod can be created: " + message, Final: true}
	switch {
	case strings.Contains(message, exceededQuota):
		_, which, _ := strings.Cut(message, exceededQuota)
		p.Reason = "QuotaExceeded"
		p.Message = "no pod can be created: " + exceededQuota + which
		p.Hint = "request less in the service's section, or raise the quota: kubectl -n " + t.namespace + " get resourcequota"
	case strings.Contains(message, "violates PodSecurity"):
		p.Reason = "AdmissionDenied"
		p.Hint = "the namespace forbids such pods: kubectl label namespace " + t.namespace + " pod-security.kubernetes.io/enforce=privileged --overwrite"
	case strings.Contains(message, "no PriorityClass"):
		p.Hint = "priority classes come with cluster-configuration: paictl service start -n cluster-configuration"
	case strings.Contains(message, "serviceaccount") && strings.Contains(message, "not found"):
		p.Hint = "a service account is missing: paictl service start creates it again"
	case containsAny(message, "admission webhook", "ValidatingAdmissionPolicy", "is forbidden", "LimitRange", "maximum"):
		p.Reason = "AdmissionDenied"
		p.Hint = "change the value in the service's section, or ask the owner of the rule"
	default:
		p.Hint = "see: kubectl -n " + t.namespace + " get events --field-selector reason=FailedCreate"
	}
	return p
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
