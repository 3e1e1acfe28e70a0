package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

func nodeOf(name, kubelet, engine string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{
		KubeletVersion: kubelet, ContainerRuntimeVersion: engine, OperatingSystem: "linux",
	}}}
}

func TestMachinesThatMountImages(t *testing.T) {
	for _, tt := range []struct {
		kubelet, engine string
		want            bool
	}{
		{"v1.36.3", "containerd://2.4.2", true},
		{"v1.36.0+k3s1", "containerd://2.1.0-k3s1", true},
		{"v1.37.0-rc.1", "containerd://3.0.0", true},
		{"v1.35.9", "containerd://2.4.2", false},
		{"v1.36.3", "containerd://2.0.7", false},
		{"v1.36.3", "containerd://1.7.29", false},
		{"v1.36.3", "cri-o://1.36.0", false},
		{"v1.36.3", "docker://29.0.0", false},
		{"kwok-v0.8.0", "containerd://2.4.2", false},
		{"v1.36.3", "", false},
		{"", "", false},
	} {
		assert.Equal(t, tt.want, mountsImages(&nodeOf("n", tt.kubelet, tt.engine).Status.NodeInfo), "%s, %s", tt.kubelet, tt.engine)
	}
	assert.True(t, mountsImages(&corev1.NodeSystemInfo{OperatingSystem: "windows", KubeletVersion: "v1.30.0"}), "no job runs there")
}

func TestOneMachineThatCannotMountImagesIsEnough(t *testing.T) {
	m := newMachines()
	var said []string
	m.changed = func(_ bool, why string) { said = append(said, why) }
	h := m.handler()
	assert.False(t, m.mountImages(), "nothing is known yet")
	h.OnAdd(nodeOf("new", "v1.36.3", "containerd://2.4.2"), true)
	assert.True(t, m.mountImages())
	old := nodeOf("old", "v1.35.0", "containerd://2.4.2")
	h.OnAdd(old, false)
	assert.False(t, m.mountImages())
	h.OnUpdate(old, nodeOf("old", "v1.36.0", "containerd://2.4.2"))
	assert.True(t, m.mountImages(), "it was updated")
	h.OnUpdate(old, old)
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "old", Obj: old})
	assert.True(t, m.mountImages(), "it is gone")
	assert.Equal(t, []string{"all nodes mount images",
		"node old doesn't mount images that programs may be run from: it has kubelet v1.35.0, containerd://2.4.2", "all nodes mount images"}, said[:3])
	h.OnDelete(nodeOf("new", "", ""))
	assert.False(t, m.mountImages())
}

func TestTheRuntimesImageIsMountedInPlaceOfItsCopy(t *testing.T) {
	pod := func() corev1.PodSpec {
		return corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "users"}, {Name: "init", Image: "r.example/pai-runtime:1", ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"install", spec.Home}}},
			Containers:     []corev1.Container{{Name: "side"}, {Name: "app", Command: []string{spec.Runtime, "run"}}},
		}
	}
	p := pod()
	mountRuntime(&p)
	assert.Equal(t, []corev1.Container{{Name: "users"}}, p.InitContainers)
	app := p.Containers[1]
	assert.Equal(t, []string{"/usr/local/pai-image/pai-runtime", "run"}, app.Command)
	require.Len(t, p.Volumes, 1)
	assert.Equal(t, &corev1.ImageVolumeSource{Reference: "r.example/pai-runtime:1", PullPolicy: corev1.PullIfNotPresent}, p.Volumes[0].Image)
	assert.Equal(t, []corev1.VolumeMount{{Name: p.Volumes[0].Name, MountPath: "/usr/local/pai-image", ReadOnly: true}}, app.VolumeMounts)
	assert.Empty(t, p.Containers[0].VolumeMounts)

	for name, change := range map[string]func(*corev1.PodSpec){
		"no init container":       func(p *corev1.PodSpec) { p.InitContainers = nil },
		"one with other duties":   func(p *corev1.PodSpec) { p.InitContainers[1].Args = []string{"install", "/elsewhere"} },
		"a program of the user's": func(p *corev1.PodSpec) { p.Containers[1].Command = []string{"sh"} },
		"the image's own program": func(p *corev1.PodSpec) { p.Containers[1].Command = nil },
	} {
		p, want := pod(), pod()
		change(&p)
		change(&want)
		mountRuntime(&p)
		assert.Equal(t, want, p, name)
	}
}

func TestDeliveryCanBeSet(t *testing.T) {
	c := &caches{machines: newMachines()}
	c.machines.put(nodeOf("new", "v1.36.3", "containerd://2.4.2"), 1)
	for d, want := range map[Delivery]bool{DeliverAuto: true, DeliverImageVolume: true, DeliverInitContainer: false} {
		assert.Equal(t, want, (&reconciler{o: Options{Delivery: d}, cache: c}).useImageVolumes(), d)
	}
	c.machines.put(nodeOf("old", "v1.33.0", "containerd://1.7.0"), 1)
	for d, want := range map[Delivery]bool{DeliverAuto: false, DeliverImageVolume: true, DeliverInitContainer: false} {
		assert.Equal(t, want, (&reconciler{o: Options{Delivery: d}, cache: c}).useImageVolumes(), d)
	}
}
