package alerthandler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

func gpuXid(node, gpu string) map[string]string {
	return map[string]string{"alertname": "GpuXidFatal", "node": node, "gpu": gpu}
}

func (w *world) nodeNow(name string) *corev1.Node {
	w.t.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return n
}

func (w *world) answersReset(name string, gpu int32) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		n := w.nodeNow(name)
		requests, _ := repair.Read(n)
		answers, _ := repair.ReadAnswers(n)
		for _, r := range requests {
			if r.GPU == gpu {
				return repair.WriteAnswers(w.t.Context(), w.Client, n, append(answers, repair.Answer{ID: r.ID, Done: true, Message: "it was reset"})) == nil
			}
		}
		return false
	}, waitFor, 20*time.Millisecond)
}

// uncordons waits until n Actions to uncordon have ended, and returns the last of these Actions.
func (w *world) uncordons(n int) (last *v1.Action) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		ended := 0
		for _, a := range w.actions() {
			if a.Spec.Do != v1.OperationUncordon || !a.Status.Phase.Final() {
				continue
			}
			ended++
			if last == nil || last.Status.EndTime.Before(a.Status.EndTime) {
				last = a
			}
		}
		return ended == n
	}, waitFor, 20*time.Millisecond)
	return last
}

// A person requests a cordon or a drain of a machine that a policy is repairing. The policy doesn't return the machine to service.
func TestAPolicyDoesntReturnWhatAPersonCordons(t *testing.T) {
	for _, do := range []v1.Operation{v1.OperationCordon, v1.OperationDrain} {
		t.Run(string(do), func(t *testing.T) {
			w := open(t)
			w.node("n3")
			h, _ := w.handler(config(t, stopIdle), w.Config)
			w.send(h, alert(gpuXid("n3", "2"), start))
			require.Eventually(t, func() bool { return w.nodeNow("n3").Spec.Unschedulable }, waitFor, 20*time.Millisecond)
			p := w.request(func(a *v1.Action) {
				a.Spec.Do, a.Spec.Machine = do, &v1.Machine{Name: "n3", UID: w.nodeNow("n3").UID}
			})
			require.Eventually(t, func() bool { return w.actions()[p.Name].Status.Phase == v1.PhaseSucceeded }, waitFor, 20*time.Millisecond)
			require.Equal(t, p.Name, v1.ReadMark(w.nodeNow("n3").Annotations).Action)
			w.answersReset("n3", 2)
			u := w.uncordons(1)
			require.Equal(t, v1.PhaseRefused, u.Status.Phase, u.Status.Message)
			require.True(t, w.nodeNow("n3").Spec.Unschedulable)
		})
	}
}

// Two GPUs of a machine break. The machine is returned to service when both GPUs have been reset.
func TestTheLastRepairReturnsAMachine(t *testing.T) {
	w := open(t)
	w.node("n3")
	h, _ := w.handler(config(t, stopIdle), w.Config)
	w.send(h, alert(gpuXid("n3", "2"), start), alert(gpuXid("n3", "5"), start))
	require.Eventually(t, func() bool {
		requests, err := repair.Read(w.nodeNow("n3"))
		return err == nil && len(requests) == 2
	}, waitFor, 20*time.Millisecond)
	w.answersReset("n3", 2)
	u := w.uncordons(1)
	require.Equal(t, v1.PhaseSucceeded, u.Status.Phase, u.Status.Message)
	require.Contains(t, u.Status.Message, "n3 stays cordoned for policy broken")
	require.True(t, w.nodeNow("n3").Spec.Unschedulable)
	w.answersReset("n3", 5)
	w.settled(6)
	n := w.nodeNow("n3")
	require.False(t, n.Spec.Unschedulable)
	require.Empty(t, n.Annotations[v1.MarkAnnotation])
	require.Len(t, v1.ReadReturns(n.Annotations), 1)
}

// A policy doesn't end the cordon of another policy. The order of the two policies doesn't matter.
func TestAPolicyKeepsTheCordonOfAnother(t *testing.T) {
	for _, first := range []string{"NodeHot", "GpuXidFatal"} {
		t.Run(first, func(t *testing.T) {
			w := open(t)
			w.node("n3")
			h, _ := w.handler(config(t, stopIdle+`  - {name: hot, alerts: {alertname: NodeHot}, steps: [{do: cordon}]}
`), w.Config)
			hot, broken := alert(map[string]string{"alertname": "NodeHot", "node": "n3"}, start), alert(gpuXid("n3", "2"), start)
			if first == "NodeHot" {
				w.send(h, hot)
				w.settled(1)
				w.send(h, broken)
			} else {
				w.send(h, broken)
				require.Eventually(t, func() bool { return w.nodeNow("n3").Spec.Unschedulable }, waitFor, 20*time.Millisecond)
				w.send(h, hot)
				w.reaches(map[v1.Phase]int{v1.PhaseSucceeded: 2, v1.PhaseActing: 1}, "the reset waits for the agent")
			}
			w.answersReset("n3", 2)
			w.settled(4)
			n := w.nodeNow("n3")
			require.True(t, n.Spec.Unschedulable)
			require.Equal(t, "hot", v1.ReadMark(n.Annotations).By.Name)
		})
	}
}
