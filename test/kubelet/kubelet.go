// Package kubelet simulates the kubelets of a cluster in tests. It runs the containers of pods as processes of this machine, in namespaces.
// In: an API server, and for each image the program that its containers run by default.
// Out: nodes, the statuses of their pods, and logs, which the API server requests over HTTPS as from a real kubelet.
package kubelet

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/kube"
)

// Options configures the kubelets of one cluster.
type Options struct {
	// Nodes lists the names of the nodes.
	Nodes []string
	// Programs maps the names of images to files of programs. A container without a command runs the program of its image.
	Programs map[string]string
	// Visible lists folders of the test that containers see at the same paths.
	Visible []string
}

// Kubelet simulates the kubelets of all nodes of a cluster.
type Kubelet struct {
	t      testing.TB
	c      *kube.Cluster
	o      Options
	folder string          // the folder of volumes
	ctx    context.Context // ends with the test

	mu    sync.Mutex
	runs  map[types.UID]*run
	names map[string]*run // by namespace and name: the last pod of that name
	made  int             // pods that got an address
	work  sync.WaitGroup
}

// Start creates the nodes, and runs their pods until the test ends. The test fails if this machine can't create containers.
func Start(t testing.TB, c *kube.Cluster, o Options) *Kubelet {
	t.Helper()
	k := &Kubelet{t: t, c: c, o: o, folder: t.TempDir(), runs: map[types.UID]*run{}, names: map[string]*run{}}
	require.NoError(t, k.possible(t.Context()))
	port := k.serve()
	for _, name := range o.Nodes {
		require.NoError(t, makeNode(t.Context(), c.Client, name, port))
	}
	var cancel context.CancelFunc
	k.ctx, cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := k.watch()
	t.Cleanup(func() {
		cancel()
		<-stopped
		k.work.Wait()
	})
	return k
}

// watch watches the pods that are bound to nodes. The returned channel is closed when the watch has ended.
func (k *Kubelet) watch() <-chan struct{} {
	bound := cache.NewListWatchFromClient(k.c.Client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.OneTermNotEqualSelector("spec.nodeName", ""))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: bound, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.saw(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.saw(o.(*corev1.Pod)) },
		DeleteFunc: k.gone,
	}})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(k.ctx)
	}()
	return stopped
}

// saw handles a new or changed pod. It starts the pods of the simulated nodes, and stops the pods that are being deleted.
func (k *Kubelet) saw(p *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.runs[p.UID]
	switch {
	case r != nil && p.DeletionTimestamp != nil && !r.deleting:
		r.deleting = true
		k.work.Go(r.end)
	case r != nil || !slices.Contains(k.o.Nodes, p.Spec.NodeName):
	case p.DeletionTimestamp != nil:
		k.work.Go(func() { k.remove(p) })
	case p.Status.Phase == corev1.PodPending:
		r = k.newRun(p)
		k.runs[p.UID], k.names[p.Namespace+"/"+p.Name] = r, r
		k.work.Go(r.live)
	}
}

// gone stops the containers of a pod that no longer exists.
func (k *Kubelet) gone(o any) {
	if last, unknown := o.(cache.DeletedFinalStateUnknown); unknown {
		o = last.Obj
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.runs[p.UID]; r != nil {
		r.kill()
		delete(k.runs, p.UID)
	}
}

// address returns an unused address for a pod. All addresses of 127.0.0.0/8 belong to this machine, so tasks can connect to each other.
func (k *Kubelet) address() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	return fmt.Sprintf("127.77.%d.%d", k.made/250, k.made%250+1)
}

// nodeAddress is the address of all nodes, at which the API server requests logs.
const nodeAddress = "127.0.0.1"

// serve serves the API of a kubelet, and returns the port.
func (k *Kubelet) serve() int32 {
	k.t.Helper()
	server := newServer(k)
	k.t.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(k.t, err)
	port, err := strconv.ParseInt(text, 10, 32)
	require.NoError(k.t, err)
	return int32(port)
}

// remove completes the deletion of a pod, as a kubelet does when the containers of the pod have ended.
func (k *Kubelet) remove(p *corev1.Pod) {
	zero := int64(0)
	err := k.c.Client.CoreV1().Pods(p.Namespace).Delete(k.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	if !apierrors.IsConflict(err) { // then another pod has its name
		k.check(p, err)
	}
}

// check fails the test if an error occurred for a pod, unless the test is ending or the pod is gone.
func (k *Kubelet) check(p *corev1.Pod, err error) {
	if err != nil && k.ctx.Err() == nil && !apierrors.IsNotFound(err) {
		k.t.Errorf("the kubelet of %s, pod %s: %v", p.Spec.NodeName, p.Name, err)
	}
}

// again is how long the kubelet waits between two checks for a Secret that a pod needs.
const again = 50 * time.Millisecond
