package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// rebuild restores the tasks that are missing from a status. Otherwise they would be treated as tasks that never began, and their running pods
// would be killed.
func (r *reconciler) rebuild(ctx context.Context, f *v1.Framework, e *entry, lost []status.Lost) error {
	result := machine.Result{}
	if e.layout.Chunks() > 0 {
		pods, err := r.list(ctx, f.Name)
		if err != nil {
			return err
		}
		byName := make(map[string]*corev1.Pod, len(pods))
		for _, p := range pods {
			byName[p.Name] = p
		}
		result.Tasks = machine.Rebuild(machine.Input{
			Framework: f, Status: e.status, Pods: machine.Pods{ByName: byName}, Now: r.now(), Rules: r.rules,
			GPUs: func(p *corev1.Pod) (*v1.TaskGPUs, bool) { return r.allocated(f, p) },
		})
		result.Changed = len(result.Tasks) > 0
		result.Decisive = result.Changed
	}
	for _, one := range lost {
		e.dirtyChunks = append(e.dirtyChunks, one.Chunk)
		if one.Written {
			r.metrics.lost.Inc()
			r.o.Log.Info("states of tasks are lost; they are found again in the pods", "framework", f.Name, "why", one.Why)
			r.recorder.Eventf(f, nil, corev1.EventTypeWarning, "TaskStatesLost", "TaskStatesLost", "%s",
				clip(fmt.Sprintf("The states of up to %d tasks are lost (%s); they are rebuilt from the pods. Earlier retries are not counted.", status.PerChunk, one.Why)))
		}
	}
	e.mark(&result, r.now())
	e.dirty = e.dirty || len(lost) > 0
	e.decisive = e.decisive || len(lost) > 0
	return nil
}
