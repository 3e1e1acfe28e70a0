package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// ordered is an agent whose Node receives requests.
type ordered struct {
	*machine
	client kubernetes.Interface
	number int
	// after returns the report of the GPUs during and after a reset. If after is nil, no reports arrive.
	after func() *gpu.Report
}

func newOrdered(t *testing.T) *ordered {
	t.Helper()
	return &ordered{machine: newMachine(t), client: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})}
}

func (o *ordered) node() *corev1.Node {
	o.t.Helper()
	n, err := o.client.CoreV1().Nodes().Get(o.t.Context(), "n1", metav1.GetOptions{})
	require.NoError(o.t, err)
	return n
}

func (o *ordered) give(index int32, action repair.Action) repair.Answer {
	o.t.Helper()
	o.number++
	id := fmt.Sprint("order-", o.number)
	require.NoError(o.t, repair.Add(o.t.Context(), o.client, "n1", repair.Request{ID: id, GPU: index, Action: action, At: o.gpus.now()}))
	if action == repair.Reset {
		defer o.reporting()()
	}
	require.NoError(o.t, o.answerRequests(o.t.Context(), o.client, o.node()))
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(o.t, err)
	for _, a := range answers {
		if a.ID == id {
			return a
		}
	}
	o.t.Fatalf("no answer to %s: %v", id, answers)
	return repair.Answer{}
}

func eight() *gpu.Report { return reportOf(8) }

// reporting sends reports of the GPUs to the agent until stop is called.
func (o *ordered) reporting() (stop func()) {
	if o.after == nil {
		return func() {}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				o.gpus.see(o.after())
			}
		}
	})
	return func() { close(done); running.Wait() }
}

func (o *ordered) reason(index int32) string {
	all, _ := o.gpus.devices()
	return all[index].reason
}

func (o *ordered) breaks(index int32, xid int) {
	r := reportOf(8)
	r.Events = []gpu.Event{{Bus: busOf(index), XID: xid, At: o.gpus.now()}}
	o.gpus.see(r)
}

func TestWhatIsWrongWithAGPUIsIgnoredByOrder(t *testing.T) {
	o := newOrdered(t)
	assert.Equal(t, repair.Answer{ID: "order-1", Message: "nothing is wrong with it"}, o.give(3, repair.Ignore))
	o.breaks(3, 74)
	require.Contains(t, o.reason(3), "XID 74")
	a := o.give(3, repair.Ignore)
	assert.True(t, a.Done)
	assert.Contains(t, a.Message, "it gets jobs again, although: XID 74")
	assert.Empty(t, o.reason(3))
	o.gpus.see(reportOf(8))
	assert.Empty(t, o.reason(3), "a later report changes nothing")
	require.NoError(t, o.tellNode(t.Context(), o.client))
	assert.Contains(t, o.node().Annotations["paictl.openpai.org/gpus"], `"index":3,"healthy":true,"model":"A100","ignored":"XID 74`)

	assert.True(t, o.give(3, repair.Heed).Done)
	assert.Contains(t, o.reason(3), "XID 74")
	assert.False(t, o.give(3, repair.Heed).Done)
	o.give(3, repair.Ignore)
	o.breaks(3, 48)
	assert.Contains(t, o.reason(3), "XID 48", "another error")
	o.give(3, repair.Ignore)
	next := o.gpus.again(t, "boot-1")
	next.see(reportOf(8))
	all, _ := next.devices()
	assert.Empty(t, all[3].reason, "the agent's next life ignores it, too")
	assert.Contains(t, all[3].ignored, "XID 48")
	o.breaks(3, 48)
	assert.Contains(t, o.reason(3), "XID 48", "the same once more")
}

func TestOrdersThatCantBeCarriedOutSayWhy(t *testing.T) {
	o := newOrdered(t)
	assert.Equal(t, "the machine has no GPU 8", o.give(8, repair.Reset).Message)
	assert.Equal(t, `the agent of this release doesn't support the order "polish"`, o.give(0, "polish").Message)
	o.breaks(1, 79)
	assert.Contains(t, o.give(1, repair.Reset).Message, "restart the machine")
	_, err := o.PrepareResourceClaims(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, o.Driver.records.add(&record{UID: "u", Namespace: "default", Name: "job", Devices: []assigned{{"gpus", "gpu-2"}}}))
	assert.Contains(t, o.give(2, repair.Reset).Message, "the claim default/job holds it")
	lost := reportOf(8)
	lost.GPUs = lost.GPUs[:7]
	o.gpus.see(lost)
	assert.Contains(t, o.give(7, repair.Reset).Message, "only a restart of the machine helps")
	assert.Contains(t, o.give(7, repair.Ignore).Message, "it can't be used: it is lost")

	require.NoError(t, repair.Add(t.Context(), o.client, "n1", repair.Request{ID: "old", GPU: 0, Action: repair.Reset, At: o.gpus.now().Add(-time.Hour)}))
	require.NoError(t, o.answerRequests(t.Context(), o.client, o.node()))
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(t, err)
	assert.Contains(t, answers[len(answers)-1].Message, "too old")
}

func TestAResetEndsWhatOnlyAResetEnds(t *testing.T) {
	o := newOrdered(t)
	o.breaks(5, 48)
	require.Contains(t, o.reason(5), "XID 48")
	o.after = eight
	a := o.give(5, repair.Reset)
	assert.True(t, a.Done, "%s", a.Message)
	assert.Empty(t, o.reason(5))
	assert.Empty(t, o.Driver.records.held)
	next := o.gpus.again(t, "boot-1")
	next.see(reportOf(8))
	all, _ := next.devices()
	assert.Empty(t, all[5].reason, "also for the agent's next life")
}

// The answer to a reset reports whether the GPU works again, because programs return a working machine to service.
func TestAGPUThatIsStillBrokenAfterItsReset(t *testing.T) {
	o := newOrdered(t)
	o.breaks(5, 48)
	o.after = func() *gpu.Report {
		r := reportOf(8)
		r.GPUs[5].Values[gpu.RowRemapFailed] = 1
		return r
	}
	a := o.give(5, repair.Reset)
	assert.False(t, a.Done)
	assert.Contains(t, a.Message, "it was reset, but still has a fault: it can no longer replace damaged memory")
	assert.Empty(t, o.Driver.records.held)

	synctest.Test(t, func(t *testing.T) {
		o := newOrdered(t)
		o.breaks(5, 48)
		a := o.give(5, repair.Reset)
		assert.False(t, a.Done)
		assert.Contains(t, a.Message, "it was reset, but isn't checked: no report of the GPUs within 1m15s")
	})
}

func TestNoClaimGetsAGPUWhileItIsReset(t *testing.T) {
	o := newOrdered(t)
	require.NoError(t, o.Driver.records.hold(4))
	c := claimOf("c", "gpu-4")
	out, err := o.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
	require.NoError(t, err)
	require.ErrorContains(t, out["c"].Err, "gpu-4 is being reset or split; retrying")
	o.Driver.records.release(4)
	out, err = o.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
	require.NoError(t, err)
	assert.NoError(t, out["c"].Err)
}

func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	o := newOrdered(t)
	o.breaks(3, 74)
	require.NoError(t, repair.Add(t.Context(), o.client, "n1", repair.Request{ID: "one", GPU: 3, Action: repair.Ignore, At: o.gpus.now()}))
	seen := o.node() // as the agent saw it
	require.NoError(t, o.answerRequests(t.Context(), o.client, seen))
	first := o.node().Annotations[repair.Answers]
	require.NoError(t, o.answerRequests(t.Context(), o.client, seen), "an event that is late")
	assert.Equal(t, first, o.node().Annotations[repair.Answers])
	require.NoError(t, o.answerRequests(t.Context(), o.client, o.node()))
	assert.Equal(t, first, o.node().Annotations[repair.Answers])

	// The answer for another GPU is added. A new answer for the same GPU replaces the previous answer.
	o.breaks(4, 74)
	o.give(4, repair.Ignore)
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(t, err)
	assert.Len(t, answers, 2)
	o.give(3, repair.Heed)
	answers, err = repair.ReadAnswers(o.node())
	require.NoError(t, err)
	assert.Len(t, answers, 2)
}

func TestHostileOrdersDoNothing(t *testing.T) {
	o := newOrdered(t)
	for _, text := range []string{"{", "null", "[]", `{"id":1}`, `[{"id":"a","gpu":-1}]`, `[{"id":"a","gpu":1},{"id":"b","gpu":1}]`, `[{"gpu":1}]`} {
		n := o.node()
		n.Annotations = map[string]string{repair.Annotation: text, repair.Answers: "]["}
		_, err := o.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, o.answerRequests(t.Context(), o.client, n), text)
	}
	b, err := json.Marshal(repair.Answer{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"","done":false,"message":""}`, string(b))
}

// sees sends the agent a report with a changed GPU.
func (o *ordered) sees(index int32, change func(*gpu.GPU)) {
	r := reportOf(8)
	change(&r.GPUs[index])
	o.gpus.see(r)
}

func TestWhatIsIgnoredHidesNothingElse(t *testing.T) {
	for name, then := range map[string]func(*ordered){
		"it is lost": func(o *ordered) { o.sees(3, func(g *gpu.GPU) { g.Lost, g.UUID = true, "" }) },
		"it can no longer replace damaged memory": func(o *ordered) {
			o.sees(3, func(g *gpu.GPU) { g.Values[gpu.RowRemapFailed] = 1 })
		},
		"its memory has uncorrectable errors": func(o *ordered) { o.sees(3, func(g *gpu.GPU) { g.Values[gpu.DoubleBitVolatile] = 1 }) },
	} {
		o := newOrdered(t)
		o.breaks(3, 74)
		require.True(t, o.give(3, repair.Ignore).Done)
		then(o)
		assert.Contains(t, o.reason(3), name)
	}
	o := newOrdered(t)
	o.sees(3, func(g *gpu.GPU) { g.Values[gpu.DoubleBitVolatile] = 1 })
	require.True(t, o.give(3, repair.Ignore).Done)
	next := o.gpus.again(t, "boot-1")
	next.tick()
	r := reportOf(8)
	r.GPUs[3].Values[gpu.DoubleBitVolatile] = 1
	next.see(r)
	all, _ := next.devices()
	assert.Empty(t, all[3].reason, "also in the agent's next life, which knows nothing at first")
	o.sees(3, func(g *gpu.GPU) { g.Values[gpu.DoubleBitVolatile] = 2 })
	assert.Contains(t, o.reason(3), "its memory has uncorrectable errors", "more of them are worse")
}

func TestALateOrderIgnoresNothingWorse(t *testing.T) {
	o := newOrdered(t)
	o.breaks(3, 74)
	late := repair.Request{ID: "late", GPU: 3, Action: repair.Ignore, Reason: o.reason(3), At: o.gpus.now()}
	o.breaks(3, 79)
	require.NoError(t, repair.Add(t.Context(), o.client, "n1", late))
	require.NoError(t, o.answerRequests(t.Context(), o.client, o.node()))
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(t, err)
	assert.Contains(t, answers[0].Message, "it now has another fault: XID 79")
	assert.Contains(t, o.reason(3), "XID 79")
	o.breaks(3, 45)
	assert.Contains(t, o.give(3, repair.Reset).Message, "XID 79", "a harmless error afterwards changes nothing")
}

func TestTwoOrdersAreCarriedOutOnceEachThoughNoOneIsTold(t *testing.T) {
	o := newOrdered(t)
	o.breaks(1, 74)
	o.breaks(2, 74)
	o.after = eight
	defer o.reporting()()
	for i := range int32(2) {
		require.NoError(t, repair.Add(t.Context(), o.client, "n1", repair.Request{ID: fmt.Sprint(i), GPU: i + 1, Action: repair.Reset, At: o.gpus.now()}))
	}
	seen := o.node() // as a watch that lags shows it
	for range 3 {
		require.NoError(t, o.answerRequests(t.Context(), o.client, seen))
	}
	require.NoError(t, o.Driver.records.add(&record{UID: "u", Namespace: "default", Name: "job", Devices: []assigned{{"gpus", "gpu-1"}}}))
	require.NoError(t, o.answerRequests(t.Context(), o.client, seen))
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(t, err)
	require.Len(t, answers, 2)
	for _, a := range answers {
		assert.True(t, a.Done, "%s", a.Message)
	}
	var many []repair.Request
	for i := range int32(600) {
		many = append(many, repair.Request{ID: fmt.Sprint("m", i), GPU: i, Action: repair.Reset, At: o.gpus.now()})
	}
	text, err := json.Marshal(many)
	require.NoError(t, err)
	n := o.node()
	n.Annotations[repair.Annotation] = string(text)
	_, err = repair.Read(n)
	require.ErrorContains(t, err, "more than 64 orders")
}

func TestTheNodeSaysWhetherAnyOfItsGPUsIsSick(t *testing.T) {
	o := newOrdered(t)
	condition := func() corev1.NodeCondition {
		t.Helper()
		require.NoError(t, o.tellNode(t.Context(), o.client))
		for _, c := range o.node().Status.Conditions {
			if c.Type == ConditionGPUs {
				return c
			}
		}
		return corev1.NodeCondition{}
	}
	assert.Equal(t, corev1.ConditionFalse, condition().Status)
	o.breaks(3, 74)
	c := condition()
	assert.Equal(t, corev1.ConditionTrue, c.Status)
	assert.Contains(t, c.Message, "GPU 3: XID 74")
	assert.True(t, o.give(3, repair.Ignore).Done)
	assert.Equal(t, corev1.ConditionFalse, condition().Status, "someone wants it used")
}

// resetVendor is a vendor whose reset removes the instances of the GPU, like NVIDIA's driver.
type resetVendor struct{ *splitVendor }

func (v resetVendor) reset(_ context.Context, g *device) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.is, g.card)
	return "it was reset", nil
}

// A reset removes the instances of a GPU, and the agent creates the instances again later. The program that reads the GPUs takes some time to start.
func TestAResetOfASplitGPU(t *testing.T) {
	o, v := newSplit(t, "1g.10gb", 7)
	o.split(t.Context())
	o.vendor = resetVendor{v}
	r := v.report()
	r.Events = []gpu.Event{{Bus: busOf(0), XID: 48, At: o.gpus.now()}}
	o.gpus.see(r)
	require.Contains(t, o.reason(0), "XID 48")
	o.after = v.report
	a := o.give(0, repair.Reset)
	assert.True(t, a.Done, a.Message)
	assert.Contains(t, o.reason(0), "it should be split")
	o.split(t.Context())
	o.gpus.see(v.report())
	assert.Empty(t, o.reason(0))

	synctest.Test(t, func(t *testing.T) {
		o := newOrdered(t)
		o.breaks(5, 48)
		var reports sync.WaitGroup
		reports.Go(func() {
			time.Sleep(50 * time.Second)
			for range 2 {
				o.gpus.see(reportOf(8))
				time.Sleep(2 * time.Second)
			}
		})
		a := o.give(5, repair.Reset)
		assert.True(t, a.Done, a.Message)
		reports.Wait()
	})
}
