package agent

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// newShared returns a machine with two GPUs. Each GPU has four parts.
func newShared(t *testing.T) *ordered {
	t.Helper()
	o := newOrdered(t)
	o.restart(2)
	o.gpus.parts = 4
	return o
}

func TestJobsShareAGPU(t *testing.T) {
	o := newShared(t)
	all, _ := o.gpus.devices()
	require.Len(t, all, 8)
	published := o.resources().Pools["n1"].Slices[0].Devices
	require.Len(t, published, 8)
	assert.Equal(t, "gpu-5", published[5].Name)
	assert.Equal(t, "SIM-n1-1", *published[5].Attributes["uuid"].StringValue)
	assert.EqualValues(t, 1, *published[5].Attributes["card"].IntValue)
	assert.EqualValues(t, 4, *published[5].Attributes["parts"].IntValue)
	memory := published[5].Capacity["memory"].Value
	assert.EqualValues(t, 20<<30, memory.Value())

	out, err := o.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claimOf("a", "gpu-4"), claimOf("b", "gpu-5", "gpu-6"), claimOf("c", "gpu-4")})
	require.NoError(t, err)
	require.NoError(t, out["a"].Err)
	require.NoError(t, out["b"].Err)
	require.ErrorContains(t, out["c"].Err, "gpu-4 belongs to the claim")
	for _, c := range []string{"a", "b"} {
		var ids []string
		for _, d := range out[types.UID(c)].Devices {
			ids = append(ids, d.CDIDeviceIDs...)
		}
		assert.Equal(t, []string{"/dev/nvidia1"}, o.files(ids), "once, also for one that has two parts of it")
	}
}

func TestASickGPUIsSickInAllItsParts(t *testing.T) {
	o := newShared(t)
	r := reportOf(2)
	r.Events = []gpu.Event{{Bus: busOf(1), XID: 74, At: o.gpus.now()}}
	o.gpus.see(r)
	all, _ := o.gpus.devices()
	for i, d := range all {
		assert.Equal(t, i >= 4, d.reason != "", "gpu-%d", i)
	}
	require.NoError(t, o.tellNode(t.Context(), o.client))
	n := o.node()
	assert.Contains(t, n.Annotations["paictl.openpai.org/gpus"], `"parts":4`)
	assert.Contains(t, n.Status.Conditions[0].Message, "GPU 1: XID 74")
	assert.NotContains(t, n.Status.Conditions[0].Message, "GPU 4")

	require.NoError(t, o.Driver.records.add(&record{UID: "u", Namespace: "default", Name: "job", PodNames: []string{"job-0"}, Devices: []assigned{{"gpus", "gpu-6"}}, Parts: 4}))
	assert.Contains(t, o.give(1, repair.Reset).Message, "the claim default/job holds it", "one part is enough")
	assert.Equal(t, map[string]string{"0": "", "1": "job-0"}, o.podsInMetrics())
	require.NoError(t, o.Driver.records.add(&record{UID: "v", Namespace: "default", Name: "other", PodNames: []string{"other-0"}, Devices: []assigned{{"gpus", "gpu-7"}}, Parts: 4}))
	assert.Equal(t, map[string]string{"0": "", "1": ""}, o.podsInMetrics(), "no one of several is its user")
	require.NoError(t, o.Driver.records.remove("u"))
	require.NoError(t, o.Driver.records.remove("v"))
	o.after = func() *gpu.Report { return reportOf(2) }
	assert.True(t, o.give(1, repair.Reset).Done)
}

func (o *ordered) podsInMetrics() map[string]string {
	o.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(o.Driver))
	families, err := registry.Gather()
	require.NoError(o.t, err)
	out := map[string]string{}
	for _, f := range families {
		if f.GetName() != "pai_gpu_unhealthy" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[labels["gpu"]] = labels["pod"]
		}
	}
	return out
}

func TestAGPUThatAJobHasAloneIsNotSplitUnderIt(t *testing.T) {
	o := newOrdered(t)
	out, err := o.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claimOf("alone", "gpu-1")})
	require.NoError(t, err)
	require.NoError(t, out["alone"].Err)
	o.restart(2) // by another configuration
	o.gpus.parts = 4
	o.writeSpecs(t.Context())
	assert.Equal(t, []string{"/dev/nvidia1"}, o.files(out["alone"].Devices[0].CDIDeviceIDs), "its container starts again with what it had")
	again, err := o.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claimOf("x", "gpu-4"), claimOf("y", "gpu-7"), claimOf("z", "gpu-1")})
	require.NoError(t, err)
	for _, c := range []types.UID{"x", "y"} {
		require.ErrorContains(t, again[c].Err, "belongs to the claim", "parts of the GPU that it has")
	}
	require.NoError(t, again["z"].Err, "a part of the other GPU, though it has the same name")
	assert.Contains(t, o.give(1, repair.Reset).Message, "holds it")
	assert.Contains(t, o.podsInMetrics(), "1")
}

func TestAClaimThatAnotherPodHasNowEndsWithThat(t *testing.T) {
	o := newOrdered(t)
	first, second := claimOf("c", "gpu-1"), claimOf("c", "gpu-1")
	first.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p1"}}
	second.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p2"}}
	for _, c := range []*resourceapi.ResourceClaim{first, second} {
		out, err := o.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
		require.NoError(t, err)
		require.NoError(t, out["c"].Err)
	}
	assert.ElementsMatch(t, []types.UID{"p1", "p2"}, o.Driver.records.of["c"].Pods)
}
