package job

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/listing"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// PendingReason returns one line that says why a pod doesn't start, because no machine accepts it or a container can't start. It returns "" if the
// pod's status has no such reason. Events may have more details; see Why.
func PendingReason(p *corev1.Pod) string {
	if listing.Started(p) {
		return ""
	}
	if why := unschedulable(p); why != "" {
		return "no machine takes it: " + why
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			w := list[i].State.Waiting
			if w == nil {
				continue
			}
			if text, _ := containerTrouble(&list[i], w, w.Message, platformImage(p, &list[i], w.Message)); text != "" {
				return text
			}
		}
	}
	return ""
}

// Gangs returns the waiting gangs with their jobs. If the name of a gang doesn't contain the name of its job, Gangs calls titleOf with the name of
// the Framework. titleOf returns the name of the job, or other for a pod without a job.
func Gangs(q *schedulerapi.Queue, titleOf func(object, other string) string) []WaitingGang {
	out := []WaitingGang{}
	alone := map[string]string{}
	for _, g := range q.Items {
		title := JobOfGroup(g.Group)
		if title == g.Group {
			object := ObjectOfGroup(g.Group)
			if alone[object] == "" {
				alone[object] = titleOf(object, title)
			}
			title = alone[object]
		}
		out = append(out, WaitingGang{title, g})
	}
	return out
}
