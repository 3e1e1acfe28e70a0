package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// appContainer is the name of the container that runs the user's program. The other containers belong to the platform.
const appContainer = "app"

// troubleAge is how long an event stays relevant.
const troubleAge = 10 * time.Minute

// trouble explains a job whose pods have machines but can't start there. It reports whether there are such pods.
func (e *evidence) trouble(w *Why) bool {
	var first string
	var others []string
	for i := range e.pods {
		p := &e.pods[i]
		text, remedy := e.podTrouble(p)
		switch {
		case text == "":
		case first == "":
			first = text
			w.Sentence = e.nameOf(p) + " " + sentenceEnd(text)
			w.Remedy = remedy
			w.fact("machine", p.Spec.NodeName)
		case text == first:
			others = append(others, e.nameOf(p))
		}
	}
	if len(others) > 0 {
		w.fact("also", plural.Of(len(others), "other task"))
	}
	return first != ""
}

func sentenceEnd(s string) string { return strings.TrimRight(strings.TrimSpace(s), ".") + "." }

// podTrouble returns the reason that a pod doesn't start, and remedies, or "" if there is no problem.
func (e *evidence) podTrouble(p *corev1.Pod) (text string, remedy []string) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil {
			detail := e.detailOf(p, w.Message)
			if text, remedy := containerTrouble(&s, w, detail, platformImage(p, &s, detail)); text != "" {
				return text, remedy
			}
		}
	}
	if p.Spec.NodeName == "" || listing.Started(p) {
		return "", nil
	}
	for i := range e.events {
		ev := &e.events[i]
		if !saysOf(ev, p) || e.now.Sub(ev.Time) > troubleAge {
			continue
		}
		if ev.Type == corev1.EventTypeNormal {
			return "", nil // the pod made progress after the failure
		}
		if text, remedy := eventTrouble(ev); text != "" {
			return text, remedy
		}
	}
	return "", nil
}

// detailOf returns the kubelet's message about a failed pull. It searches the events, because later messages say only that the kubelet waits before
// it retries.
func (e *evidence) detailOf(p *corev1.Pod, message string) string {
	if message != "" && !strings.HasPrefix(message, "Back-off") || strings.Contains(message, "ErrImagePull:") {
		return message
	}
	for i := range e.events {
		if ev := &e.events[i]; saysOf(ev, p) && ev.Reason == "Failed" && strings.HasPrefix(ev.Message, "Failed to pull") {
			return ev.Message
		}
	}
	return message
}

// platformImage returns the platform's image that a container waits for, or "". It is the image of an init container, or the image of a volume that
// the message mentions.
func platformImage(p *corev1.Pod, s *corev1.ContainerStatus, said string) string {
	if s.Name != appContainer {
		return s.Image
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil && strings.Contains(said, v.Image.Reference) {
			return v.Image.Reference
		}
	}
	return ""
}

// containerTrouble explains why a container can't start. ours is the image that it waits for if that is one of the platform's images, or "".
func containerTrouble(s *corev1.ContainerStatus, w *corev1.ContainerStateWaiting, detail, ours string) (text string, remedy []string) {
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable":
		what, remedy := pullTrouble(detail)
		if ours != "" {
			return fmt.Sprintf("can't get the platform's own image %s: %s", ours, what),
				[]string{"tell the administrator: the image of the job runtime must be on the machines, or in a registry that they reach"}
		}
		return fmt.Sprintf("can't get %s: %s", s.Image, what), remedy
	case "InvalidImageName":
		return fmt.Sprintf("can't start: %q is not the name of an image", s.Image), []string{"correct uri of the prerequisite in the job file: [registry/]name[:tag]"}
	case "ErrImageNeverPull":
		return fmt.Sprintf("can't start: %s is not on its machine, and must not be pulled", s.Image), []string{"use an image that is in a registry"}
	case "CreateContainerConfigError":
		return "can't start: " + clip(w.Message), configRemedy(w.Message)
	case "CreateContainerError", "RunContainerError":
		if failure, ok := strings.CutPrefix(w.Message, "ImageVolumeMountFailed"); ok {
			return "can't start: its machine doesn't mount the image of the job runtime" + clip(failure),
				[]string{"tell the administrator: with runtimeImage.delivery: init-container in the configuration of job-controller nothing is mounted"}
		}
		return "can't start: " + clip(w.Message), []string{"see the message; the job file requests something that this image or this machine doesn't have"}
	}
	return "", nil
}

// pullTrouble explains why an image can't be pulled, based on the registry's message.
func pullTrouble(message string) (text string, remedy []string) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(message), w) })
	}
	switch {
	case has("no match for platform", "no matching manifest"):
		return "the image isn't built for the processors of its machine", []string{"build the image for the architecture of the machines, or for several: docker buildx build --platform"}
	case has("not found", "manifest unknown", "does not exist"):
		return "there is no such image or tag", []string{"check uri of the prerequisite in the job file, especially the tag; a private image also needs auth, because registries hide it from others"}
	case has("unauthorized", "denied", "authentication required", "forbidden", "no basic auth"):
		return "the registry refuses the login", []string{"write auth with username and password below the prerequisite of the image; the password belongs to secrets"}
	case has("no such host", "i/o timeout", "connection refused", "network is unreachable", "tls", "eof", "context deadline exceeded", "too many requests", "toomanyrequests"):
		return "its machine can't reach the registry: " + clip(tail(message)), []string{"this is retried; if it doesn't help, ask the administrator which registry the machines can reach"}
	case has("no space left"):
		return "the disk of its machine is full", []string{"tell the administrator"}
	}
	return clip(tail(message)), []string{"check uri of the prerequisite in the job file"}
}

// tail returns the registry's message without the prefix that the container engine adds.
func tail(message string) string {
	if i := strings.LastIndex(message, "failed to do request: "); i >= 0 {
		return message[i+len("failed to do request: "):]
	}
	return message
}

// eventTrouble explains an event of a pod that can't start on its machine.
func eventTrouble(ev *api.Event) (text string, remedy []string) {
	switch ev.Reason {
	case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
		return "waits for a volume: " + clip(mountFailure(ev.Message)), configRemedy(ev.Message)
	case "FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady":
		return "gets no network on its machine: " + clip(ev.Message), []string{"this is retried; if it doesn't help, tell the administrator: paictl cluster status"}
	case "InspectFailed", "FailedPrepareDynamicResources":
		return "can't start: " + clip(ev.Message), nil
	}
	return "", nil
}

// mountFailure removes the command line of mount, which precedes the output of mount, from a message.
func mountFailure(message string) string {
	message = strings.TrimPrefix(message, "Unable to attach or mount volumes: ")
	if head, rest, ok := strings.Cut(message, "Mounting command:"); ok {
		if _, output, ok := strings.Cut(rest, "Output:"); ok && strings.TrimSpace(output) != "" {
			return strings.TrimSpace(head) + ": " + strings.TrimSpace(output)
		}
	}
	return message
}

// mountRemedies maps words in the output of mount to remedies. The first entry that matches counts.
var mountRemedies = []struct {
	words  []string
	remedy string
}{
	{[]string{"registered CSI drivers"},
		"tell the administrator: the CSI driver of the storage doesn't run on the machine"},
	{[]string{"rpc.statd"},
		"tell the administrator: locks of NFS 3 need rpc.statd on the machine (nfs-common); without locks: the mount option nolock of the storage"},
	{[]string{"/sbin/mount.", "bad option", "unknown filesystem type", "wrong fs type", "helper program", "cannot mount //", "not supported by kernel", "No such device"},
		"tell the administrator: the program or the kernel module that mounts this kind of storage is missing on the machine (for NFS: nfs-common; for SMB: cifs-utils)"},
	{[]string{"access denied", "mount error(13)", "Permission denied", "Operation not permitted", "Required key not available", "Key has expired", "Key was rejected"},
		"tell the administrator: the server of the storage refuses this machine, or its login; the exports of the server must allow each machine of the cluster"},
	{[]string{"requested NFS version", "Protocol not supported", "incorrect mount option", "mount error(22)", "mount error(95)", "Invalid argument", "Operation not supported"},
		"tell the administrator: the server of the storage or the kernel refuses the version of the protocol, or another option; see the mountOptions of the storage"},
	{[]string{"Program not registered", "timed out", "No route to host", "Network is unreachable", "Connection refused", "Host is down", "mount error(11", "Failed to resolve", "could not resolve", "Name or service not known"},
		"this is retried; tell the administrator: the machine can't reach the server of the storage"},
	{[]string{"reason given by server: No such file or directory", "mount error(2)", "does not exist", "No such file or directory", "hostPath type check failed"},
		"tell the administrator: the storage names a folder or an export that its server or this machine doesn't have"},
	{[]string{"Stale file handle", "stale NFS file handle"},
		"tell the administrator: the server of the storage replaced the exported folder; the storage must be mounted again on the machine"},
}

func configRemedy(message string) []string {
	switch {
	case strings.Contains(message, "secret") && strings.Contains(message, "not found"):
		if strings.Contains(message, "Volume.") && !strings.Contains(message, `volume "pai-`) { // the volume belongs to a storage, not to the job
			return []string{"tell the administrator: the Secret with the login of the storage doesn't exist"}
		}
		return []string{"a Secret that the job needs was removed: stop the job and submit it again"}
	case strings.Contains(message, "persistentvolumeclaim"):
		return []string{"the storage no longer exists: see extras.storages of the job file, and ask the administrator"}
	}
	if strings.Contains(message, "ount") { // MountVolume, mount failed, Unable to attach or mount
		for _, m := range mountRemedies {
			if slices.ContainsFunc(m.words, func(w string) bool { return strings.Contains(strings.ToLower(message), strings.ToLower(w)) }) {
				return []string{m.remedy}
			}
		}
	}
	return []string{"this is retried; if it doesn't help, tell the administrator"}
}

// unschedulable returns why Kubernetes' scheduler found no machine for a pod, or "" if the pod has no such condition.
func unschedulable(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			return clip(withoutPreemption(c.Message))
		}
	}
	return ""
}

func remedyUnschedulable(why string) []string {
	switch {
	case strings.Contains(why, "volume node affinity conflict"):
		return []string{"its storage is on machines that have no room, or don't accept it: it starts when there is room there, or if it doesn't use that storage (extras.storages of the job file)"}
	case strings.Contains(why, "persistentvolumeclaim"):
		return configRemedy(why)
	case strings.Contains(why, "Insufficient"):
		return []string{"it starts when others finish; if no machine is large enough, request less in resourcePerInstance"}
	case strings.Contains(why, "untolerated taint"), strings.Contains(why, "node affinity"), strings.Contains(why, "node selector"):
		return []string{"machines may be cordoned or lost, or no machine is labelled for jobs: an administrator can check with paictl cluster status"}
	}
	return nil
}

// clip shortens a text to one line of readable length. It keeps a part of the beginning, which names the failure, and a longer part of the end, which
// explains the failure.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 300 {
		return string(r[:97]) + " ... " + string(r[len(r)-198:])
	}
	return s
}

// startingWhat describes what a task on a machine waits for before its program runs.
func (e *evidence) startingWhat(t *Task) string {
	for i := range e.pods {
		p := &e.pods[i]
		if p.Name != t.Pod {
			continue
		}
		for j := range e.events {
			ev := &e.events[j]
			if saysOf(ev, p) && (ev.Reason == "Pulling" || ev.Reason == "Pulled") {
				if ev.Reason == "Pulling" {
					return fmt.Sprintf("its image on %s (%s)", p.Spec.NodeName, image(p))
				}
				break
			}
		}
		return "its container on " + p.Spec.NodeName
	}
	return "its machine"
}

// image returns the image of the container that runs the user's program, or "".
func image(p *corev1.Pod) string {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == appContainer {
			return p.Spec.Containers[i].Image
		}
	}
	return p.Annotations[v1.AnnotationTaskRole]
}
