package job

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/listing"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// PendingReason says in one line why a pod doesn't start: no machine accepts it, or its container can't start. It returns "" if it finds no
// such reason. Events may have more details; see Why.
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

// Gangs returns the gangs that wait, with their jobs. titleOf names the job of a Framework if the gang's name doesn't contain it.
// It returns other for a pod without a job.
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
