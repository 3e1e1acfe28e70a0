package alerthandler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

const restartLost = `
restartMachines: true
policies:
  - {name: lost, alerts: {alertname: GpuXidFatal, remedy: restart}, steps: [{do: drain}, {do: restart-machine}, {do: uncordon}]}
`

// gpuNode returns a machine with GPUs whose agent has reported their state.
func (w *world) gpuNode(name string) *corev1.Node {
	w.t.Helper()
	n := w.node(name)
	n.Status.NodeInfo.BootID = "boot-0"
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: checks.ConditionGPUsUnhealthy, Status: corev1.ConditionFalse})
	n, err := w.Client.CoreV1().Nodes().UpdateStatus(w.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	return n
}

// machinesRestart simulates the restarts of machines with a restart order, and counts the restarts.
func (w *world) machinesRestart(restarts *atomic.Int64) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			nodes, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(nodes.Items); i++ {
				w.restartOne(ctx, &nodes.Items[i], restarts)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
}

func (w *world) restartOne(ctx context.Context, n *corev1.Node, restarts *atomic.Int64) {
	order, err := repair.ReadRestart(n)
	answer, _ := repair.ReadRestartAnswer(n)
	if err != nil || order == nil || answer != nil && answer.ID == order.ID {
		return
	}
	if order.Boot == n.Status.NodeInfo.BootID {
		n.Status.NodeInfo.BootID = fmt.Sprint("boot-", restarts.Add(1))
		if _, err := w.Client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
			restarts.Add(-1) // another one has written to the Node
		}
		return
	}
	_ = repair.WriteRestartAnswer(ctx, w.Client, n, repair.Answer{ID: order.ID, Done: true, Message: "the machine has restarted"})
}

// A GPU of a machine has fallen off the bus. The machine is drained, restarted once and returned to service, although the handler is killed at any
// request.
func TestAMachineIsRestartedOnceThoughTheHandlerIsKilled(t *testing.T) {
	w := open(t)
	var resets, restarts atomic.Int64
	w.machinesWork(&resets)
	w.machinesRestart(&restarts)
	w.gpuNode("n3")
	c := config(t, restartLost)
	c.Limits.RestartsPerHour = 1
	for point, more := rand.IntN(5), true; more; point += 5 {
		require.NoError(t, w.objects.Resource(v1.Actions).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		require.NoError(t, w.Client.CoreV1().Nodes().Delete(t.Context(), "n3", metav1.DeleteOptions{}))
		w.gpuNode("n3")
		xid := alert(map[string]string{"alertname": "GpuXidFatal", "remedy": "restart", "node": "n3", "gpu": "2"}, start)
		w.pod("n3", "a")
		restarts.Store(0)
		killed := &mortal{answered: point%2 == 0}
		killed.left.Store(int64(point))
		mortal := rest.CopyConfig(w.Config)
		mortal.Wrap(killed.wrap)
		h, end := w.handler(c, mortal)
		require.Eventually(t, func() bool { return post(t, h, xid) == http.StatusNoContent || killed.dead.Load() }, waitFor, 10*time.Millisecond)
		require.Eventually(t, func() bool { return killed.dead.Load() || len(w.actions()) == 3 && finished(w.actions()) }, waitFor, 10*time.Millisecond)
		end()
		more = killed.dead.Load()
		h, end = w.handler(c, w.Config)
		w.send(h, xid)
		for _, a := range w.settled(3) {
			require.Equal(t, v1.PhaseSucceeded, a.Status.Phase, "point %d: %s: %s", point, a.Name, a.Status.Message)
			if a.Spec.Do == v1.OperationRestartMachine {
				require.Equal(t, "boot-0", a.Status.Boot)
			}
		}
		end()
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n3", metav1.GetOptions{})
		require.NoError(t, err)
		require.False(t, n.Spec.Unschedulable, "point %d", point)
		require.Equal(t, "boot-1", n.Status.NodeInfo.BootID)
		require.Equal(t, int64(1), restarts.Load(), "point %d: the machine restarts once", point)
		order, err := repair.ReadRestart(n)
		require.NoError(t, err)
		require.Equal(t, "policy lost", order.By)
	}
	require.Zero(t, resets.Load())
}

// An administrator's request for a restart is refused unless restarts are allowed and the machine is drained. A second request is refused while a
// restart is in progress.
func TestARestartOnRequest(t *testing.T) {
	w := open(t)
	n := w.gpuNode("n1")
	ends := func(a *v1.Action) *v1.Action {
		t.Helper()
		require.Eventually(t, func() bool { return w.actions()[a.Name].Status.Phase.Final() }, waitFor, 20*time.Millisecond)
		return w.actions()[a.Name]
	}
	restart := func(a *v1.Action) {
		a.Spec.Do, a.Spec.Machine = v1.OperationRestartMachine, &v1.Machine{Name: n.Name, UID: n.UID}
	}
	_, end := w.handler(config(t, stopIdle), w.Config)
	require.Contains(t, ends(w.request(restart)).Status.Message, "restarts of machines are off")
	end()
	w.handler(config(t, restartLost), w.Config)
	require.Contains(t, ends(w.request(restart)).Status.Message, "isn't cordoned")
	ends(w.request(func(a *v1.Action) { restart(a); a.Spec.Do = v1.OperationDrain }))
	first := w.request(restart)
	require.Eventually(t, func() bool { return w.actions()[first.Name].Status.Phase == v1.PhaseActing }, waitFor, 20*time.Millisecond)
	require.Contains(t, ends(w.request(restart)).Status.Message, "the action "+first.Name+" restarts n1 already")
	var restarts atomic.Int64
	w.machinesRestart(&restarts)
	require.Equal(t, v1.PhaseSucceeded, ends(first).Status.Phase)
	require.EqualValues(t, 1, restarts.Load())
	now, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, now.Spec.Unschedulable, "a person returns it")
}

// fails writes the answer of an agent that the restart hasn't repaired the machine.
func (w *world) fails(name, message string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		n := w.nodeNow(name)
		order, err := repair.ReadRestart(n)
		return err == nil && order != nil && repair.WriteRestartAnswer(w.t.Context(), w.Client, n, repair.Answer{ID: order.ID, Message: message}) == nil
	}, waitFor, 20*time.Millisecond)
}

// Two GPUs of a machine are lost, and a restart doesn't repair them. The machine isn't restarted again for the second GPU, or when a GPU fails again.
func TestAMachineIsNotRestartedAgainAfterAFailure(t *testing.T) {
	w := open(t)
	w.gpuNode("n3")
	h, _ := w.handler(config(t, restartLost), w.Config)
	lost := func(gpu string) policy.Alert {
		return alert(map[string]string{"alertname": "GpuXidFatal", "remedy": "restart", "node": "n3", "gpu": gpu}, start)
	}
	w.send(h, lost("2"), lost("5"))
	w.fails("n3", "the machine has restarted, and still has faults: GPU 2")
	for _, restarts := range []int{2, 3} {
		var begun, refused int
		require.Eventually(t, func() bool {
			begun, refused = 0, 0
			for _, a := range w.actions() {
				if a.Spec.Do == v1.OperationRestartMachine && a.Begun() {
					begun++
				} else if a.Spec.Do == v1.OperationRestartMachine && a.Status.Phase == v1.PhaseRefused {
					refused++
				}
			}
			return begun+refused == restarts
		}, waitFor, 20*time.Millisecond)
		require.Equal(t, 1, begun)
		w.send(h, at(lost("2"), 0, 5))
		w.send(h, at(lost("2"), 6, 0))
	}
}
