package machines

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// machines returns a configuration of machines with four GPUs each, in two cells of two GPUs.
func machines(names ...string) cell.Config {
	c := cell.Config{Types: []cell.Type{{Name: "PAIR", Child: "A100", Children: 2}, {Name: "NODE", Child: "PAIR", Children: 2, Node: true}}}
	for _, n := range names {
		c.Physical = append(c.Physical, cell.Physical{Type: "NODE", Address: n})
	}
	return c
}

const four = `{"devices":[{"index":0,"healthy":true,"model":"A100"},{"index":1,"healthy":true},{"index":2,"healthy":true},{"index":3,"healthy":true}]}`

func nodeWith(name, gpus string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	if gpus != "" {
		n.Annotations[api.DevicesAnnotation] = gpus
	}
	return n
}

// sliceWith returns the ResourceSlice of a machine with GPUs on these NUMA nodes.
func sliceWith(node string, numa ...int64) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{Driver: claim.Driver, NodeName: &node}}
	for i, at := range numa {
		index := int64(i)
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: claim.DeviceName(int32(i)), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": {IntValue: &index}, "numaNode": {IntValue: &at}}})
	}
	return s
}

func TestMachinesAreComparedWithTheirCells(t *testing.T) {
	objects := []runtime.Object{
		nodeWith("good", four), sliceWith("good", 0, 0, 1, 1),
		nodeWith("crossed", four), sliceWith("crossed", 0, 1, 0, 1),
		nodeWith("one-socket", four), sliceWith("one-socket", 0, 0, 0, 0),
		nodeWith("fewer", `{"devices":[{"index":0,"healthy":true},{"index":2,"healthy":false,"reason":"XID 79"}]}`),
		nodeWith("failed", strings.Replace(four, `{"index":3,"healthy":true}`, `{"index":3,"reason":"XID 79"}`, 1)),
		nodeWith("ordinary", strings.Replace(four, `{"index":3,"healthy":true}`, `{"index":3,"healthy":true,"forPods":true}`, 1)),
		nodeWith("quiet", ""),
		nodeWith("unknown", four), nodeWith("cpu", `{"devices":[]}`), nodeWith("broken", "{"),
	}
	told, err := Read(t.Context(), fake.NewClientset(objects...))
	require.NoError(t, err)
	findings, silent, err := Compare(machines("good", "crossed", "one-socket", "fewer", "failed", "ordinary", "quiet", "away", "broken"), told)
	require.NoError(t, err)
	got := map[string][]string{}
	for _, f := range findings {
		got[f.Node] = append(got[f.Node], f.Message)
		assert.NotEmpty(t, f.Remedy)
		assert.Equal(t, f.Node == "failed", f.Failed, "%+v", f)
		assert.Equal(t, f.Node == "crossed", f.Slower, "%+v", f)
	}
	assert.Equal(t, map[string][]string{
		"away":     {"the cluster has no such node"},
		"broken":   {"the annotation paictl.openpai.org/gpus can't be read: unexpected end of JSON input"},
		"crossed":  {"a cell PAIR has GPUs [0 1], which are on the NUMA nodes 0 and 1", "a cell PAIR has GPUs [2 3], which are on the NUMA nodes 0 and 1"},
		"failed":   {"GPUs [3] are not healthy; GPU 3: XID 79"},
		"ordinary": {"GPUs [3] are not healthy; GPU 3: it is for ordinary pods"},
		"fewer":    {"GPUs [1 3] of the configuration are missing; GPUs [2] are not healthy; GPU 2: XID 79"},
		"unknown":  {"its GPUs [0 1 2 3] are in no cell: no job gets them"},
	}, got)
	assert.Equal(t, []string{"quiet"}, silent)
}
