package notify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Notices about machines are correct sentences. All operations except resets apply to the whole machine, even if the alert is about a GPU.
func TestNoticesAboutMachinesAreSentences(t *testing.T) {
	c, gpu := &Config{}, int32(2)
	act := metav1.NewTime(start.Add(time.Hour))
	for _, w := range []struct {
		do              v1.Operation
		phase           v1.Phase
		planned, result string
	}{
		{v1.OperationRestartMachine, v1.PhaseRefused, "restart of n1 at 2026-11-30 09:00 UTC", "restart of n1 was refused"},
		{v1.OperationResetGPU, v1.PhaseFailed, "reset of GPU 2 of n1 at 2026-11-30 09:00 UTC", "reset of GPU 2 of n1 failed"},
		{v1.OperationDrain, v1.PhaseSucceeded, "drain of n1 at 2026-11-30 09:00 UTC", "drain of n1 succeeded"},
		{v1.OperationUncordon, v1.PhaseCanceled, "uncordon of n1 at 2026-11-30 09:00 UTC", "uncordon of n1 was canceled"},
	} {
		a := &v1.Action{Spec: v1.ActionSpec{Do: w.do, Machine: &v1.Machine{Name: "n1", GPU: &gpu}}, Status: v1.ActionStatus{Phase: w.phase, ActTime: &act}}
		n := c.planned(a, &World{})
		require.Equal(t, w.planned, n.Subject)
		n = c.result(a)
		require.Equal(t, w.result, n.Subject)
		require.Contains(t, n.Text, "The "+w.result+".\n")
	}
}
