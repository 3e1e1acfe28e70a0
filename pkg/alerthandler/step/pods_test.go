package step_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// If the pods for a drain aren't read, the decision is the same as with the pods. A drain that waits for a limit never reads the pods.
func TestPodsAreReadIfTheyDecide(t *testing.T) {
	read := 0
	for _, phase := range v1.Phases() {
		for _, by := range []func(*v1.Action){func(*v1.Action) {}, byAdmin} {
			for _, dry := range []bool{false, true} {
				for _, cordoned := range []bool{false, true} {
					for _, limit := range []step.Limit{{}, {Wait: "it waits", After: time.Minute}, {Refused: "too many"}} {
						for _, wait := range []time.Duration{0, time.Hour} {
							a := onMachine(v1.OperationDrain, by, grace(wait))
							a.Spec.DryRun, a.Status.Phase = dry, phase
							at := metav1.NewTime(start.Add(time.Minute))
							if phase == v1.PhaseNoticed {
								a.Status.NoticeTime, a.Status.ActTime = &at, &at
							}
							f := facts()
							f.Machine.Unschedulable, f.Limit = cordoned, limit
							if step.NeedsPods(a, f) {
								read++
								require.False(t, !cordoned && phase == v1.PhasePending && !dry, "it waits")
								continue
							}
							without := step.Decide(a, f, start)
							f.Machine.Pods = []step.Pod{{Namespace: "pai-jobs", Name: "p", Managed: true}}
							with := step.Decide(a, f, start)
							with.Status.Results = nil // a drain that begins cordons first, and lists its pods at the next look
							require.Equal(t, without, with, "%s, dry run %v, cordoned %v, limit %v, grace %v", phase, dry, cordoned, limit, wait)
						}
					}
				}
			}
		}
	}
	require.NotZero(t, read)
	require.False(t, step.NeedsPods(onMachine(v1.OperationResetGPU), facts()))
}
