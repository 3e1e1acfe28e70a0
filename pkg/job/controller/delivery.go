package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Delivery specifies how the job runtime gets into a pod.
type Delivery string

// Values of Delivery. An init container that copies the runtime works on all machines. But the kubelet notices the end of the init container only
// when it checks all pods, once a second. An image volume needs neither the copy nor the wait.
const (
	DeliverAuto          Delivery = "auto" // an image volume if all machines can mount one
	DeliverImageVolume   Delivery = "image-volume"
	DeliverInitContainer Delivery = "init-container"
)

// ParseDelivery parses a Delivery. It returns an error for unknown values.
func ParseDelivery(text string) (Delivery, error) {
	all := []string{string(DeliverAuto), string(DeliverImageVolume), string(DeliverInitContainer)}
	if !slices.Contains(all, text) {
		return "", fmt.Errorf("the delivery of the runtime is %q; use %s", text, strings.Join(all, ", "))
	}
	return Delivery(text), nil
}

// The first versions that can execute programs in image volumes. Earlier versions of Kubernetes forbid it. For container runtimes other than
// containerd, the versions are unknown here.
var (
	imageVolumeKubelet    = version.MustParseGeneric("1.36.0")
	imageVolumeContainerd = version.MustParseGeneric("2.1.0")
)

const containerd = "containerd://"

// mountsImages reports whether a node can mount images. It returns true for a node with another system than Linux, because jobs run only on
// Linux.
func mountsImages(n *corev1.NodeSystemInfo) bool {
	if n.OperatingSystem != "" && n.OperatingSystem != "linux" {
		return true
	}
	engine, ours := strings.CutPrefix(n.ContainerRuntimeVersion, containerd)
	return ours && atLeast(engine, imageVolumeContainerd) && atLeast(n.KubeletVersion, imageVolumeKubelet)
}

func atLeast(text string, least *version.Version) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.AtLeast(least)
}

// machines tracks which nodes can't mount images.
type machines struct {
	changed func(mount bool, why string) // may be nil; it is called under the lock

	mu      sync.Mutex
	known   int
	lacking map[string]string // the versions of each node that can't
	told    bool
}

func newMachines() *machines { return &machines{lacking: map[string]string{}} }

func (m *machines) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { m.put(o.(*corev1.Node), 1) },
		UpdateFunc: func(_, o any) { m.put(o.(*corev1.Node), 0) },
		DeleteFunc: func(o any) {
			if name, err := toolscache.DeletionHandlingObjectToName(o); err == nil {
				m.remove(name.Name)
			}
		},
	}
}

func (m *machines) put(n *corev1.Node, more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known += more
	delete(m.lacking, n.Name)
	if i := &n.Status.NodeInfo; !mountsImages(i) {
		m.lacking[n.Name] = fmt.Sprintf("kubelet %s, %s", i.KubeletVersion, i.ContainerRuntimeVersion)
	}
	m.tell()
}

func (m *machines) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known--
	delete(m.lacking, name)
	m.tell()
}

// tell calls changed if the result of mountImages has changed since the last call.
func (m *machines) tell() {
	mount := m.known > 0 && len(m.lacking) == 0
	if m.changed == nil || mount == m.told {
		return
	}
	m.told = mount
	why := "all nodes mount images"
	if m.known == 0 {
		why = "there is no node"
	}
	for _, name := range slices.Sorted(maps.Keys(m.lacking)) {
		why = fmt.Sprintf("node %s doesn't mount images that programs may be run from: it has %s", name, m.lacking[name])
		break
	}
	m.changed(mount, why)
}

// mountImages reports whether every node can mount images, because it isn't known in advance on which node a pod will run.
func (m *machines) mountImages() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known > 0 && len(m.lacking) == 0
}

// slimNode reduces a node to the fields that mountsImages reads and the model of its GPUs.
func slimNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion}}
	if model := modelOf(n); model != "" {
		slim.Labels = map[string]string{labelModel: model}
	}
	slim.Status.NodeInfo = corev1.NodeSystemInfo{
		OperatingSystem: n.Status.NodeInfo.OperatingSystem, KubeletVersion: n.Status.NodeInfo.KubeletVersion,
		ContainerRuntimeVersion: n.Status.NodeInfo.ContainerRuntimeVersion,
	}
	return slim, nil
}

func (r *reconciler) useImageVolumes() bool {
	switch r.o.Delivery {
	case DeliverImageVolume:
		return true
	case DeliverInitContainer:
		return false
	}
	return r.cache.machines.mountImages()
}

// volumeRuntime is the name of the image volume with the runtime.
const volumeRuntime = "pai-runtime"

// mountRuntime replaces the init container that copies the runtime with a volume of the runtime's image. It doesn't change a pod without such an
// init container.
func mountRuntime(p *corev1.PodSpec) {
	i := slices.IndexFunc(p.InitContainers, func(c corev1.Container) bool {
		return c.Name == spec.InitContainer && slices.Equal(c.Args, []string{"install", spec.Home})
	})
	app := slices.IndexFunc(p.Containers, func(c corev1.Container) bool {
		return c.Name == appName && len(c.Command) > 0 && c.Command[0] == spec.Runtime
	})
	if i < 0 || app < 0 {
		return
	}
	image := p.InitContainers[i]
	p.InitContainers = slices.Delete(p.InitContainers, i, i+1)
	p.Volumes = append(p.Volumes, corev1.Volume{Name: volumeRuntime, VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: image.Image, PullPolicy: image.ImagePullPolicy},
	}})
	c := &p.Containers[app]
	c.Command[0] = spec.ImageRuntime
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeRuntime, MountPath: spec.Image, ReadOnly: true})
}
