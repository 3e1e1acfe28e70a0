package gangs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// twoTeams is a configuration of four nodes with two GPUs each, in two racks. A owns a rack. B owns a node.
const twoTeams = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
    - {cellType: RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1}]}
    - {cellType: RACK, cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}
virtualClusters:
  A:
    virtualCells: [{cellType: RACK, cellNumber: 1}]
  B:
    virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]
`

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// cluster contains a Store and an in-memory API server. It simulates kube-scheduler.
type cluster struct {
	t      *testing.T
	client *fake.Clientset
	b      *Store
	events *record.FakeRecorder
	queue  *testQueue
	clock  *clock
	cancel context.CancelFunc
	n      int // the number of pods so far
	// refusing maps the nodes that can't run pods on trial to reasons.
	refusing map[string]string
}

var testOptions = Options{Namespace: "pai-system", ConfigMap: "scheduler-configuration", ConfigKey: "hivedscheduler.yaml", Port: "9096", Claims: true}

// testQueue records the calls to kube-scheduler's queue.
type testQueue struct {
	mu        sync.Mutex
	activated []string
	rejected  []types.UID
}

func (q *testQueue) Activate(pods []*corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range pods {
		q.activated = append(q.activated, p.Name)
	}
}

func (q *testQueue) Reject(pods []types.UID, _ string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rejected = append(q.rejected, pods...)
}

// newCluster starts a Store that is the leader, with the nodes of twoTeams. The Store makes decisions only on request. Gangs
// don't wait for missing pods.
func newCluster(t *testing.T, yaml string, objects ...runtime.Object) *cluster {
	t.Helper()
	c := prepare(t, yaml, objects...)
	c.start(testOptions)
	require.NoError(t, c.b.Lead(t.Context()))
	return c
}

func prepare(t *testing.T, yaml string, objects ...runtime.Object) *cluster {
	t.Helper()
	for _, name := range []string{"a0", "a1", "b0", "b1"} {
		objects = append(objects, readyNode(name))
	}
	objects = append(objects, configMap(yaml))
	c := &cluster{t: t, client: fake.NewClientset(objects...), clock: &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}
	c.client.PrependReactor("create", "pods/binding", c.reactBind)
	return c
}

// start creates a new Store and abandons the former Store, as if its machine had failed.
func (c *cluster) start(opts Options) {
	c.t.Helper()
	if c.cancel != nil {
		c.cancel()
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	c.cancel = cancel
	c.t.Cleanup(cancel)
	c.events = record.NewFakeRecorder(1000)
	c.queue = &testQueue{}
	shared := informers.NewSharedInformerFactory(c.client, 0)
	c.b = New(c.client, shared, c.queue, opts, slog.New(slog.NewTextHandler(newTestLog(c.t), nil)), c.events, c.clock.now)
	c.b.grace = 0
	shared.Start(ctx.Done())
	go c.b.config.RunWithContext(ctx)
	c.b.work.run(ctx)
	c.eventually(c.b.synced) // cache.WaitForCacheSync would check only every 100 ms
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return c.b.active != nil || c.b.problem != ""
	})
}

// testLog prints the log of a failed test. It drops messages after the end of the test.
type testLog struct {
	mu sync.Mutex
	t  *testing.T // nil after the end of the test
}

func newTestLog(t *testing.T) *testLog {
	l := &testLog{t: t}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.t = nil
	})
	return l
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t != nil {
		l.t.Log(strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}

func (c *cluster) reactBind(action clienttesting.Action) (bool, runtime.Object, error) {
	b := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	obj, err := c.client.Tracker().Get(gvr, b.Namespace, b.Name)
	if err != nil {
		return true, nil, err
	}
	p := obj.(*corev1.Pod).DeepCopy()
	if p.UID != b.UID || p.Spec.NodeName != "" {
		return true, nil, apierrors.NewConflict(gvr.GroupResource(), b.Name, fmt.Errorf("pod is already assigned to node %q", p.Spec.NodeName))
	}
	p.Spec.NodeName = b.Target.Name
	for k, v := range b.Annotations {
		p.Annotations[k] = v
	}
	return true, b, c.client.Tracker().Update(gvr, p, b.Namespace)
}

func (c *cluster) eventually(ok func() bool) {
	c.t.Helper()
	require.Eventually(c.t, ok, 10*time.Second, 2*time.Millisecond)
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

func configMap(yaml string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "scheduler-configuration"},
		Data: map[string]string{"hivedscheduler.yaml": yaml}}
}

// spec returns the text of a request. gang has the format GANG:PODS:GPUS.
func spec(vc string, priority int, gang string, extra ...string) string {
	part := strings.Split(gang, ":")
	text := fmt.Sprintf("virtualCluster: %s\npriority: %d\nleafCellType: G\nleafCellNumber: %s\naffinityGroup:\n  name: %s\n  members: [{podNumber: %s, leafCellNumber: %s}]\n",
		vc, priority, part[2], part[0], part[1], part[2])
	return text + strings.Join(extra, "")
}

func newPod(name, spec string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{annotation.SpecKey: spec}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{annotation.EnableKey: resource.MustParse("1")},
		}}}},
	}
}

// create creates a pod and waits until the state contains it.
func (c *cluster) create(p *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	c.n++
	p.CreationTimestamp = metav1.NewTime(c.clock.now().Add(time.Duration(c.n) * time.Second))
	p, err := c.client.CoreV1().Pods(p.Namespace).Create(c.t.Context(), p, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.eventually(func() bool { return c.state(p) != "" })
	return p
}

// state returns the state of a pod in the Store, or "" for an unknown pod.
func (c *cluster) state(p *corev1.Pod) string {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.b.state == nil || c.b.state.pods[p.UID] == nil {
		return ""
	}
	return c.b.state.pods[p.UID].state
}

func (c *cluster) wait(p *corev1.Pod, state string) {
	c.t.Helper()
	c.eventually(func() bool { return c.state(p) == state })
}

func (c *cluster) pod(p *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	p, err := c.client.CoreV1().Pods(p.Namespace).Get(c.t.Context(), p.Name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return p
}

func (c *cluster) delete(p *corev1.Pod) {
	c.t.Helper()
	require.NoError(c.t, c.client.CoreV1().Pods(p.Namespace).Delete(c.t.Context(), p.Name, metav1.DeleteOptions{}))
	c.wait(p, "")
}

func (c *cluster) ask(method, path string, body any) (int, string) {
	c.t.Helper()
	var reader io.Reader
	if text, ok := body.(string); ok {
		reader = strings.NewReader(text)
	} else if body != nil {
		data, err := json.Marshal(body)
		require.NoError(c.t, err)
		reader = bytes.NewReader(data)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, reader)
	if token, err := access.Read(c.b.opts.TokenFile); err == nil {
		r.Header.Set(access.TokenHeader, token)
	}
	w := httptest.NewRecorder()
	c.b.API().ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func (c *cluster) get(path string, into any) {
	c.t.Helper()
	code, text := c.ask(http.MethodGet, path, nil)
	require.Equal(c.t, http.StatusOK, code, text)
	require.NoError(c.t, json.Unmarshal([]byte(text), into))
}

// decide makes the Store decide once. It returns the node of a pod's place, or the reason why the pod waits.
func (c *cluster) decide(p *corev1.Pod) (node, reason string) {
	c.t.Helper()
	c.b.Decide()
	for c.answer() {
		c.b.Decide()
	}
	at, _ := c.b.Place(p.UID)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if known := c.b.state.pods[p.UID]; known != nil {
		reason = known.reason
	}
	return at.Node, reason
}

// answer tells the Store that pods on trial could run, except on the nodes in c.refusing. It reports whether any pods were on
// trial.
func (c *cluster) answer() bool {
	c.b.mu.Lock()
	trials := map[types.UID]string{}
	for uid, p := range c.b.state.pods {
		if p.trial != "" {
			trials[uid] = p.trial
		}
	}
	c.b.mu.Unlock()
	for uid, node := range trials {
		reason := c.refusing[node]
		c.b.Tried(uid, node, reason == "", reason)
	}
	return len(trials) > 0
}

// place works like decide, but fails the test if the pod gets no place.
func (c *cluster) place(p *corev1.Pod) string {
	c.t.Helper()
	node, reason := c.decide(p)
	require.NotEmpty(c.t, node, reason)
	return node
}

// waits works like decide, but fails the test if the pod gets a place.
func (c *cluster) waits(p *corev1.Pod) string {
	c.t.Helper()
	node, reason := c.decide(p)
	require.Empty(c.t, node)
	require.NotEmpty(c.t, reason)
	return reason
}

func (c *cluster) bind(p *corev1.Pod, node string) {
	c.t.Helper()
	require.NoError(c.t, c.b.Bind(c.t.Context(), p.UID, node))
}

func (c *cluster) run(p *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	p = c.create(p)
	c.bind(p, c.place(p))
	c.wait(p, "Bound")
	return c.pod(p)
}

// reconfigure replaces the configuration and waits until the Store has checked it.
func (c *cluster) reconfigure(yaml string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps("pai-system").Update(c.t.Context(), configMap(yaml), metav1.UpdateOptions{})
	require.NoError(c.t, err)
	c.eventually(func() bool {
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return c.b.active != nil && c.b.active.text == yaml || c.b.problem != ""
	})
}

func (c *cluster) said() []string {
	var out []string
	for {
		select {
		case e := <-c.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// hears waits for events with these texts. It returns all received events, one per line. Events are written after the lock is
// released, by the goroutine that held the lock.
func (c *cluster) hears(texts ...string) string {
	c.t.Helper()
	var all []string
	c.eventually(func() bool {
		all = append(all, c.said()...)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(strings.Join(all, "\n"), text) })
	})
	return strings.Join(all, "\n")
}

func gpus(p *corev1.Pod) string {
	return p.Spec.NodeName + ":" + p.Annotations[annotation.IsolationKey]
}

func noDoubleUse(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	users := map[string]string{}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || completed(p) {
			continue
		}
		for index := range strings.SplitSeq(p.Annotations[annotation.IsolationKey], ",") {
			gpu := p.Spec.NodeName + ":" + index
			require.Empty(t, users[gpu], "%s and %s have %s", users[gpu], p.Name, gpu)
			users[gpu] = p.Name
		}
	}
}
