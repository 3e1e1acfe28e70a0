package books_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// The admission policy accepts pods whose scheduler is any hivedscheduler-ds-*, even if no profile has that name. This scheduler never binds such
// pods, so it must not preempt other pods for them.
func TestAPodOfAnotherSchedulerEndsNoGangs(t *testing.T) {
	s := newStage(t, "other-scheduler")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.fillOpportunistic()
	s.createPods(&schedulertest.Gang{Name: "train", VC: "A", Priority: 5, Pods: 2, GPUs: 8}, func(p *corev1.Pod) {
		p.Spec.SchedulerName = "hivedscheduler-ds-typo"
	})
	assert.Equal(t, 3, s.survivors(15*time.Second))
}
