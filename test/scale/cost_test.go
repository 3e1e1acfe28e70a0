package scale

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// peerDriver is the driver of devices that Kubernetes' own scheduler allocates, like the devices of another vendor's agent.
const peerDriver = "peer.example.org"

// These are the names of the schedulers whose processor time is measured.
const (
	stockScheduler = "the sandbox's own kube-scheduler"
	ownScheduler   = "pai-scheduler"
)

// variant is one of the ways to place the same pods on the same nodes.
type variant struct {
	name      string
	scheduler string // which of the programs decides
	claims    bool   // its pods have claims
	change    func(g *schedulertest.Gang, p *corev1.Pod)
}

func variants() []variant {
	plain := func(p *corev1.Pod) {
		p.Annotations = nil
		delete(p.Spec.Containers[0].Resources.Limits, annotation.EnableKey)
	}
	stock := func(p *corev1.Pod) {
		plain(p)
		p.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	return []variant{
		{"no-gpu/kube-scheduler", stockScheduler, false, func(_ *schedulertest.Gang, p *corev1.Pod) { stock(p) }},
		{"no-gpu/pai-scheduler", ownScheduler, false, func(_ *schedulertest.Gang, p *corev1.Pod) { plain(p) }},
		{"gpu/kube-scheduler-claim-templates", stockScheduler, true, func(g *schedulertest.Gang, p *corev1.Pod) {
			stock(p)
			template := templateOf(g.GPUs)
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claim.Ref, ResourceClaimTemplateName: &template}}
			p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: claim.Ref}}
		}},
		{"gpu/pai-scheduler-annotations", ownScheduler, false, func(*schedulertest.Gang, *corev1.Pod) {}},
		{"gpu/pai-scheduler-claims", ownScheduler, true, func(_ *schedulertest.Gang, p *corev1.Pod) {
			claim.Expect(p, func(*corev1.Container) bool { return true })
		}},
	}
}

// BenchmarkPods measures the processor time that each program uses for a pod, from the pod's creation until the pod runs, and until the pod and its
// claim are gone. The same pods go to the same nodes, in one way after the other, while both schedulers run. The processor time of idle programs is
// subtracted. PAICTL_SCALE_PODS is the maximum number of pods, and PAICTL_SCALE_RUNNING is the number of other pods that already run.
func BenchmarkPods(b *testing.B) {
	w := newWorld(b, size(b, 16))
	w.publishPeers()
	w.fill(number(b, "PAICTL_SCALE_RUNNING", 0))
	p := schedulertest.Start(b, w.c, schedulertest.Options{Name: "one", Namespace: namespace, QPS: 1000})
	leads(b, p)
	list := some(gangs(w.nodes), number(b, "PAICTL_SCALE_PODS", 1200))
	pods, _ := count(list)
	time.Sleep(10 * time.Second) // until the work of their start is done
	idle := idle(20 * time.Second)
	for _, v := range variants() {
		b.Run(v.name, func(b *testing.B) {
			for range b.N {
				w.measure(b, v, list, pods, idle)
			}
		})
	}
}

// some selects gangs from all parts of a list, with at most n pods in total.
func some(list []*schedulertest.Gang, n int) []*schedulertest.Gang {
	all, _ := count(list)
	var out []*schedulertest.Gang
	seen, taken := 0, 0
	for _, g := range list {
		seen += g.Pods
		if taken+g.Pods <= seen*min(n, all)/all {
			out, taken = append(out, g), taken+g.Pods
		}
	}
	return out
}

func templateOf(gpus int) string { return fmt.Sprintf("gpus-%d", gpus) }

// publishPeers adds eight devices of another driver to each node. It also creates the objects with which pods request these devices.
func (w *world) publishPeers() {
	w.t.Helper()
	api := w.c.Client.ResourceV1()
	_, err := api.DeviceClasses().Create(w.t.Context(), &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: peerDriver},
		Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", peerDriver)}}}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	for _, gpus := range []int{1, 2, 8} {
		_, err := api.ResourceClaimTemplates(namespace).Create(w.t.Context(), &resourceapi.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: templateOf(gpus)},
			Spec: resourceapi.ResourceClaimTemplateSpec{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: claim.Ref, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: peerDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(gpus)},
			}}}}},
		}, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
	g, ctx := errgroup.WithContext(w.t.Context())
	g.SetLimit(8)
	for i := range w.nodes {
		node := fmt.Sprintf("n-%d", i+1)
		g.Go(func() error {
			devices := make([]resourceapi.Device, 8)
			for k := range devices {
				devices[k].Name = claim.DeviceName(int32(k))
			}
			_, err := api.ResourceSlices().Create(ctx, &resourceapi.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "peer-" + node},
				Spec: resourceapi.ResourceSliceSpec{
					Driver: peerDriver, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}, NodeName: &node, Devices: devices,
				},
			}, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(w.t, g.Wait())
}

// fill creates running pods that no scheduler has scheduled, in a separate namespace.
func (w *world) fill(pods int) {
	w.t.Helper()
	if pods == 0 {
		return
	}
	const others = "others"
	schedulertest.Namespace(w.t, w.c.Client, others)
	g, ctx := errgroup.WithContext(w.t.Context())
	g.SetLimit(16)
	for i := range pods {
		g.Go(func() error {
			p := (&schedulertest.Gang{Name: "other"}).Pod(i)
			p.Annotations, p.Spec.NodeName = nil, fmt.Sprintf("n-%d", i%w.nodes+1)
			delete(p.Spec.Containers[0].Resources.Limits, annotation.EnableKey)
			_, err := w.c.Client.CoreV1().Pods(others).Create(ctx, p, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(w.t, g.Wait())
	schedulertest.Eventually(w.t, limit(pods), func() error {
		left, err := w.c.Client.CoreV1().Pods(others).List(w.t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Pending", Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("pod %s doesn't run yet", left.Items[0].Name)
		}
		return err
	})
}

// idle returns the processor time that each program uses in a second while the cluster is idle.
func idle(long time.Duration) times {
	before, start := usage(), time.Now()
	time.Sleep(long)
	out := times{}
	for name, s := range usage() {
		out[name] = (s - before[name]) / time.Since(start).Seconds()
	}
	return out
}

// measure creates all pods in one way, and then removes them.
func (w *world) measure(b *testing.B, v variant, list []*schedulertest.Gang, pods int, idle times) {
	b.Helper()
	w.mu.Lock()
	clear(w.bound)
	w.mu.Unlock()
	report := func(what string, before times, start time.Time) {
		took, used := time.Since(start).Seconds(), usage()
		total := 0.0
		for name, short := range map[string]string{"kube-apiserver": "apiserver", "etcd": "etcd", "kube-controller-manager": "controllers", v.scheduler: "scheduler"} {
			ms := 1000 * (used[name] - before[name] - took*idle[name]) / float64(pods)
			total += ms
			b.ReportMetric(ms, what+"-"+short+"-ms/pod")
		}
		b.ReportMetric(total, what+"-ms/pod")
		b.ReportMetric(took, what+"-s")
	}
	before, start := usage(), time.Now()
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(8)
	for _, gang := range list {
		g.Go(func() error {
			for i := range gang.Pods {
				p := gang.Pod(i)
				v.change(gang, p)
				if _, err := w.c.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, g.Wait())
	w.waitBound(pods, limit(pods))
	schedulertest.Eventually(b, limit(pods), func() error { return w.phase(corev1.PodRunning, pods) })
	report("start", before, start)

	before, start = usage(), time.Now()
	zero := int64(0)
	require.NoError(b, w.c.Client.CoreV1().Pods(namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}))
	schedulertest.Eventually(b, limit(pods), func() error {
		if n := len(w.pods.GetStore().ListKeys()); n > 0 {
			return fmt.Errorf("%d pods are there", n)
		}
		return w.noClaims(b.Context(), v.claims)
	})
	report("end", before, start)
}

// phase returns an error unless at least the given number of pods is in a phase.
func (w *world) phase(want corev1.PodPhase, pods int) error {
	n := 0
	for _, obj := range w.pods.GetStore().List() {
		if p, ok := obj.(*corev1.Pod); ok && p.Status.Phase == want {
			n++
		}
	}
	if n < pods {
		return fmt.Errorf("%d of %d pods are %s", n, pods, want)
	}
	return nil
}

// noClaims returns an error while claims exist. If had is false, the pods had no claims, so it returns nil.
func (w *world) noClaims(ctx context.Context, had bool) error {
	if !had {
		return nil
	}
	left, err := w.c.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil && len(left.Items) > 0 {
		err = fmt.Errorf("the claim %s is there", left.Items[0].Name)
	}
	if err != nil {
		time.Sleep(time.Second) // the check itself costs the API server time, too
	}
	return err
}
