package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/kube"
	build "github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// namespace is the namespace with the scheduler's configuration and all pods.
const namespace = "scale"

func TestMain(m *testing.M) {
	code := m.Run()
	schedulertest.Clean()
	build.Clean()
	os.Exit(code)
}

// size returns the number of nodes in PAICTL_SCALE_NODES, or few if the variable isn't set.
func size(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("PAICTL_SCALE_NODES")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 4 || n%4 != 0 {
		t.Fatalf("PAICTL_SCALE_NODES=%s is no multiple of 4", text)
	}
	return n
}

// world is a control plane with simulated nodes and four virtual clusters of equal size.
type world struct {
	t     testing.TB
	c     *kube.Cluster
	nodes int
	pods  cache.SharedIndexInformer

	mu    sync.Mutex
	bound map[string]time.Time // by the name of the pod
	more  chan struct{}        // closed and replaced when a pod is bound
}

// newWorld starts a world, which ends with the test.
func newWorld(t testing.TB, nodes int) *world {
	t.Helper()
	w := &world{t: t, nodes: nodes, bound: map[string]time.Time{}, more: make(chan struct{}), c: serve(t, nodes)}
	schedulertest.Namespace(t, w.c.Client, namespace)
	schedulertest.Configure(t, w.c.Client, namespace, configuration(nodes))
	w.watch()
	return w
}

// controllers excludes the controllers of Endpoints. No test here uses a service, and these controllers read all pods of the namespace for each
// change of a pod. With 20,000 pods, they would dominate the measured time.
const controllers = "*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller"

// serve starts a control plane with simulated nodes, which ends with the test.
func serve(t testing.TB, nodes int) *kube.Cluster {
	t.Helper()
	folder := bundletest.ControlPlane(t)
	dir, qps := t.TempDir(), number(t, "PAICTL_SCALE_CONTROLLER_QPS", 0)
	ready, done := make(chan error), make(chan struct{})
	var s *sandbox.Sandbox
	go func() {
		runtime.LockOSThread() // the programs end with the thread
		var err error
		s, err = sandbox.ServeAPI(context.WithoutCancel(t.Context()),
			sandbox.Options{Dir: dir, Name: "n", Bundle: folder, Hosts: nodes, Controllers: controllers, ControllerQPS: qps})
		ready <- err
		<-done
	}()
	err := <-ready
	t.Cleanup(func() {
		if s != nil {
			_ = s.Down(context.WithoutCancel(t.Context())) // they end with the thread anyway
		}
		close(done)
	})
	require.NoError(t, err)
	c, err := kube.Open(kube.Options{Kubeconfig: s.Kubeconfig()})
	require.NoError(t, err)
	c.Config.QPS = -1 // as fast as the API server accepts pods
	c.Client, err = kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	return c
}

// watch starts to record when each pod is bound.
func (w *world) watch() {
	factory := informers.NewSharedInformerFactoryWithOptions(w.c.Client, 0, informers.WithNamespace(namespace))
	w.pods = factory.Core().V1().Pods().Informer()
	note := func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok || p.Spec.NodeName == "" {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, known := w.bound[p.Name]; !known {
			w.bound[p.Name] = time.Now()
			close(w.more)
			w.more = make(chan struct{})
		}
	}
	_, err := w.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }})
	require.NoError(w.t, err)
	go w.pods.RunWithContext(w.t.Context())
	require.True(w.t, cache.WaitForCacheSync(w.t.Context().Done(), w.pods.HasSynced))
}

// waitBound waits until n pods are bound. If that takes longer than limit, it fails the test.
func (w *world) waitBound(n int, limit time.Duration) {
	w.t.Helper()
	end := time.After(limit)
	for {
		w.mu.Lock()
		have, more := len(w.bound), w.more
		w.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-more:
		case <-end:
			w.t.Fatalf("%d of %d pods are bound after %s", have, n, limit)
		}
	}
}

// configuration returns the configuration of the scheduler for a number of nodes. Each node has 8 GPUs. Each rack has 32 nodes, or fewer in a small
// cluster. Each virtual cluster owns a quarter of the cluster.
func configuration(nodes int) string {
	rack := min(32, nodes/4)
	var b strings.Builder
	fmt.Fprintf(&b, `physicalCluster:
  cellTypes:
    QUAD: {childCellType: H100, childCellNumber: 4}
    NODE: {childCellType: QUAD, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: %d}
  physicalCells:
`, rack)
	for i := range nodes {
		if i%rack == 0 {
			b.WriteString("    - cellType: RACK\n      cellChildren:\n")
		}
		fmt.Fprintf(&b, "        - {cellAddress: n-%d}\n", i+1)
	}
	b.WriteString("virtualClusters:\n")
	for _, vc := range vcs {
		fmt.Fprintf(&b, "  %s:\n    virtualCells: [{cellType: RACK, cellNumber: %d}]\n", vc, nodes/rack/len(vcs))
	}
	return b.String()
}

var vcs = []string{"vision", "speech", "search", "ads"}

// gangs returns gangs that use 95 percent of the GPUs of every virtual cluster. Their pods have 8, 2 or 1 GPUs; on 1024 nodes, there are 5000 pods.
// The order of the gangs mixes the virtual clusters.
func gangs(nodes int) []*schedulertest.Gang {
	scale := func(n int) int { return max(1, n*nodes/1024) }
	var out []*schedulertest.Gang
	add := func(kind string, count, pods, gpus int) {
		for i := range count {
			for _, vc := range vcs {
				out = append(out, &schedulertest.Gang{Namespace: namespace, Name: fmt.Sprintf("%s-%s-%d", vc, kind, i), VC: vc, Priority: 10, Pods: pods, GPUs: gpus})
			}
		}
	}
	if nodes < 256 {
		add("large", 1, max(1, nodes/16), 8)
		add("medium", 1, max(1, nodes/16), 2)
		add("small", max(1, nodes/32), 8, 1)
		return out
	}
	add("large", scale(4), 16, 8)
	add("medium", scale(32), 8, 2)
	add("small", scale(31), 30, 1)
	return out
}

func count(list []*schedulertest.Gang) (pods, gpus int) {
	for _, g := range list {
		pods += g.Pods
		gpus += g.Pods * g.GPUs
	}
	return pods, gpus
}

// create creates the pods of all gangs, for eight gangs at the same time.
func (w *world) create(ctx context.Context, list []*schedulertest.Gang) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, gang := range list {
		g.Go(func() error { return gang.Create(ctx, w.c.Client) })
	}
	return g.Wait()
}

// check fails the test unless exactly the pods of the gangs exist, all of them are bound, and no GPU belongs to two pods.
func (w *world) check(list []*schedulertest.Gang) {
	w.t.Helper()
	have, err := w.c.Client.CoreV1().Pods(namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	pods, _ := count(list)
	require.Len(w.t, have.Items, pods)
	for i := range have.Items {
		p := &have.Items[i]
		require.NotEmpty(w.t, p.Spec.NodeName, p.Name)
		require.Contains(w.t, []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}, p.Status.Phase, p.Name)
	}
	require.NoError(w.t, schedulertest.DoubleUse(have.Items))
}

// times maps the names of programs to their processor time in seconds.
type times map[string]float64

// program is this process, or a process that it has started.
type program struct {
	name    string
	pid     int
	seconds float64 // processor time that it has used
}

// programs returns this process and the processes that it has started.
func programs() (out []program) {
	self := os.Getpid()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		name, parent, seconds, err := stat(pid)
		if err != nil || pid != self && parent != self {
			continue
		}
		if pid == self {
			name = "this test"
		} else if link, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
			if name = filepath.Base(link); name == "kube-scheduler" {
				name = stockScheduler
			}
		}
		out = append(out, program{name, pid, seconds})
	}
	return out
}

// usage returns the processor time that each program has used so far.
func usage() times {
	out := times{}
	for _, p := range programs() {
		out[p.name] += p.seconds
	}
	return out
}

// stat parses /proc/PID/stat. The second field of this file is a name in brackets.
func stat(pid int) (name string, parent int, seconds float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, 0, err
	}
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || end < open {
		return "", 0, 0, errors.New("no name")
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 13 {
		return "", 0, 0, errors.New("too short")
	}
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return "", 0, 0, err
	}
	for _, f := range fields[11:13] { // user and system, in hundredths of a second
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return "", 0, 0, err
		}
		seconds += n / 100
	}
	return string(text[open+1 : end]), parent, seconds, nil
}

// since returns the processor time that was used between two calls of usage as text, the largest first.
func (t times) since(before times) string {
	type used struct {
		name    string
		seconds float64
	}
	var list []used
	for name, s := range t {
		list = append(list, used{name, s - before[name]})
	}
	slices.SortFunc(list, func(a, b used) int { return int(100 * (b.seconds - a.seconds)) })
	var parts []string
	for _, u := range list {
		parts = append(parts, fmt.Sprintf("%s %.1f s", u.name, u.seconds))
	}
	return strings.Join(parts, ", ")
}

// metric returns a number from a text in Prometheus' format, or 0 if the text doesn't contain it. name includes the labels.
func metric(text, name string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64) // 0 if it isn't a number
			return v
		}
	}
	return 0
}
