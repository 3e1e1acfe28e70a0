package ready

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// verdict is the judgement of an object or of a whole release.
type verdict struct {
	ready           bool
	pods, readyPods int
	found           []suspicion
	since           time.Time
}

// judge determines the state of all targets. judge sends no request.
func judge(targets []target, s *snapshot) verdict {
	out := verdict{ready: true}
	for _, t := range targets {
		one := s.judgeOne(t)
		out.ready = out.ready && one.ready
		out.pods, out.readyPods = out.pods+one.pods, out.readyPods+one.readyPods
		for _, f := range one.found {
			// If a service works, an evicted and replaced pod is not a problem.
			if !one.ready || f.Reason == "NodeNotReady" {
				out.found = append(out.found, f)
			}
		}
		if one.since.After(out.since) {
			out.since = one.since
		}
	}
	return out
}

func (s *snapshot) judgeOne(t target) verdict {
	switch t.kind {
	case kindDeployment:
		return s.deployment(t)
	case kindDaemonSet:
		return s.daemonSet(t)
	case kindStatefulSet:
		return s.statefulSet(t)
	case kindJob:
		return s.job(t)
	case kindClaim:
		return s.claim(t)
	case kindVolume:
		return s.volume(t)
	}
	return s.pod(t)
}

func missing(t target) verdict {
	return verdict{found: []suspicion{{group: t.String(), Problem: Problem{
		Object: t.String(), Reason: ReasonMissing, Message: "it is missing", Final: true,
		Hint: "it was deleted; create it again with: paictl service start",
	}}}}
}

// ofPods counts the pods and collects their problems.
func (s *snapshot) ofPods(t target, pods []*corev1.Pod, desired int32) verdict {
	out := verdict{pods: int(desired), readyPods: min(countReady(active(pods)), int(desired))}
	for _, p := range pods {
		out.found = append(out.found, s.podOf(p, t.String())...)
		if c := condition(p, corev1.PodReady); c != nil && c.LastTransitionTime.After(out.since) {
			out.since = c.LastTransitionTime.Time
		}
	}
	return out
}

func (s *snapshot) pod(t target) verdict {
	p, ok := find(s.pods, t.namespace, t.name)
	if !ok {
		return missing(t)
	}
	out := s.ofPods(t, []*corev1.Pod{p}, 1)
	out.ready = out.readyPods == 1 || p.Status.Phase == corev1.PodSucceeded
	return out
}

// claim judges a claim. A claim is ready if it is bound. A claim is also ready if its volume is only bound when a pod uses the claim.
func (s *snapshot) claim(t target) verdict {
	c, ok := find(s.claims, t.namespace, t.name)
	if !ok {
		return missing(t)
	}
	p := Problem{Object: t.String()}
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	switch {
	case c.Status.Phase == corev1.ClaimBound:
		return verdict{ready: true}
	case c.Status.Phase == corev1.ClaimLost:
		p.Reason, p.Final, p.Message = "VolumeLost", true, fmt.Sprintf("its volume %s is gone, including its data", c.Spec.VolumeName)
		p.Hint = "restore the volume, or delete the claim and start the service again: kubectl -n " + t.namespace + " delete pvc " + t.name
	case class != "" && c.Spec.VolumeName == "":
		sc, found := find(s.classes, "", class)
		if found && sc.VolumeBindingMode != nil && *sc.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
			return verdict{ready: true}
		}
		p.Reason, p.Message, p.Final = "VolumeUnbound", fmt.Sprintf("storage class %s does not exist", class), true
		p.Hint = "start the storage service (paictl service start -n storage), or name another persistence.storageClass in the service's section; see: kubectl get storageclass"
		if found {
			p.Final, p.Message = false, fmt.Sprintf("no volume of storage class %s has been bound to it yet", class)
			p.Hint = "see the messages of its provisioner: kubectl -n " + t.namespace + " describe pvc " + t.name
		}
	default:
		p.Reason, p.Message = "VolumeUnbound", "no volume has been bound to it yet"
		p.Hint = "name a persistence.storageClass in the service's section; see: kubectl get storageclass,pv"
	}
	return verdict{found: []suspicion{{group: t.String(), Problem: p}}}
}

func (s *snapshot) volume(t target) verdict {
	v, ok := find(s.volumes, "", t.name)
	switch {
	case !ok:
		return missing(t)
	case v.Status.Phase != corev1.VolumeFailed:
		return verdict{ready: true}
	}
	return verdict{found: []suspicion{{group: t.String(), Problem: Problem{
		Object: t.String(), Reason: "VolumeFailed", Message: strings.TrimSpace("its volume can't be reclaimed: " + v.Status.Message), Final: true,
		Hint: "see: kubectl describe pv " + t.name,
	}}}}
}
