package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// ProbeImage is the default image of the doctor's pods. Machines that paictl has installed contain this image.
const ProbeImage = "paictl.openpai.org/netcheck:v1"

const (
	probePrefix = "paictl-doctor-"
	// labelProbe marks the namespaces of doctors. annotationOwner identifies the run that created an object.
	labelProbe      = "paictl.openpai.org/doctor"
	annotationOwner = "paictl.openpai.org/owner"
	probeName       = "netcheck"
	closedName      = "closed" // the pod with a NetworkPolicy that admits no traffic
	probePort       = 8080

	// podsWithin limits the time until pods are ready. endWithin limits the time until pods have ended.
	podsWithin = 90 * time.Second
	endWithin  = 30 * time.Second
	// abandoned is the age at which the namespace of a doctor on another computer counts as abandoned. No run takes so long.
	abandoned = time.Hour
	// asks is the maximum number of simultaneous requests to pods.
	asks = 16
)

// probe holds the doctor's objects. A pod on each machine sends and receives requests. The other objects are a service for these pods, and one pod
// that a NetworkPolicy isolates.
type probe struct {
	c      *Cluster
	o      Options
	done   chan struct{} // closed when all results are known
	err    error         // the reason why no pods are ready
	pods   []corev1.Pod  // the ready pods, by node
	closed *corev1.Pod
	svc    *corev1.Service
	// lacking holds the reason for each node without a ready pod.
	lacking map[string]lack

	mu        sync.Mutex
	namespace string
}

func newProbe(c *Cluster, o Options) *probe {
	return &probe{c: c, o: o, done: make(chan struct{}), lacking: map[string]lack{}}
}

// wait waits until the ready pods are known, or until ctx ends.
func (p *probe) wait(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

func (p *probe) run(ctx context.Context) {
	defer close(p.done)
	p.err = p.start(ctx)
}

func (p *probe) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, podsWithin)
	defer cancel()
	client := p.c.Kube.Client
	if err := removeAbandoned(ctx, client, p.c.Now()); err != nil {
		return err
	}
	nodes, err := p.c.Nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return errors.New("the cluster has no nodes")
	}
	p.o.tell("starting a pod on each of %s", plural.Of(len(nodes), "node"))
	if err := p.make(ctx, client, nodes); err != nil {
		return err
	}
	return p.await(ctx, client, nodes)
}

func (p *probe) make(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node) error {
	// Store the name before the namespace exists, so that end removes the namespace even after an interrupted request.
	name := probePrefix + mark()
	p.mu.Lock()
	p.namespace = name
	p.mu.Unlock()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{annotationOwner: p.o.Owner},
		Labels: map[string]string{labelProbe: "true", "pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make a namespace for the doctor's pods: %w", err)
	}
	if _, err := client.NetworkingV1().NetworkPolicies(name).Create(ctx, closedPolicy(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make a NetworkPolicy: %w", err)
	}
	if _, err := client.AppsV1().DaemonSets(name).Create(ctx, probeSet(p.c.Image), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the doctor's pods: %w", err)
	}
	if p.svc, err = client.CoreV1().Services(name).Create(ctx, probeService(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make a service before the doctor's pods: %w", err)
	}
	closed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: closedName, Labels: labelsOf(closedName)}, Spec: probePod(p.c.Image)}
	for i := range nodes {
		if isReady(&nodes[i]) && onLinux(&nodes[i]) {
			closed.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodes[i].Labels[corev1.LabelHostname]}
		}
	}
	if _, err = client.CoreV1().Pods(name).Create(ctx, closed, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the pod behind a NetworkPolicy: %w", err)
	}
	return nil
}

// await waits until every Ready node has a ready pod, or ctx ends. It ignores other nodes, because the check nodes-ready reports them.
func (p *probe) await(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node) error {
	for {
		list, err := client.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && p.sort(list.Items, nodes) || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Canceled
	}
	if len(p.pods) > 0 {
		return nil
	}
	for _, node := range sortedKeys(p.lacking) {
		return fmt.Errorf("no pod of the doctor started within %s; on %s: %s", podsWithin, node, p.lacking[node].why)
	}
	return fmt.Errorf("no pod of the doctor started within %s: no node is Ready", podsWithin)
}

// sort separates ready pods from other pods, and reports whether all expected pods are ready.
func (p *probe) sort(pods []corev1.Pod, nodes []corev1.Node) bool {
	p.pods, p.closed, p.lacking = nil, nil, map[string]lack{}
	why := map[string]lack{}
	for i := range pods {
		pod := &pods[i]
		ready, reason := podReady(pod)
		switch {
		case pod.Labels["app.kubernetes.io/name"] == closedName:
			if ready {
				p.closed = pod
			}
		case ready && pod.Status.PodIP != "":
			p.pods = append(p.pods, *pod)
		case pod.Spec.NodeName != "":
			why[pod.Spec.NodeName] = lack{reason, waitsForImage(pod)}
		}
	}
	slices.SortFunc(p.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	for i := range nodes {
		n := &nodes[i]
		if !isReady(n) || !onLinux(n) || slices.ContainsFunc(p.pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == n.Name }) {
			continue
		}
		p.lacking[n.Name] = why[n.Name]
		if p.lacking[n.Name].why == "" {
			p.lacking[n.Name] = lack{why: "no pod was placed there"}
		}
	}
	return len(p.lacking) == 0 && p.closed != nil
}

// onLinux reports whether the doctor's pods can run on a node. The node must run Linux and must not be a virtual kubelet.
func onLinux(n *corev1.Node) bool {
	system := n.Labels[corev1.LabelOSStable]
	return (system == "" || system == "linux") && n.Labels["type"] != "virtual-kubelet"
}

// lack is the reason why a node has no ready pod of the doctor. The field image reports whether the pod waits for an image that can't be pulled.
type lack struct {
	why   string
	image bool
}

func waitsForImage(p *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && imageMissing(s.State.Waiting.Reason)
	})
}

// imageMissing reports whether a waiting reason of the kubelet means that an image can't be pulled.
func imageMissing(reason string) bool {
	return slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}, reason)
}

// end removes the doctor's objects, even if its pods never became ready.
func (p *probe) end(ctx context.Context) {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.namespace == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	err := removeNamespace(ctx, p.c.Kube.Client, p.namespace)
	if err != nil {
		p.o.tell("warning: the namespace %s could not be removed: %v; the next run removes it", p.namespace, err)
	}
}

func removeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	now := int64(0)
	// Delete pods without a grace period, which would delay the deletion of the namespace.
	_ = client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}) // best effort
	err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a conflict: it is already being deleted
		return nil
	}
	return err
}

func removeAbandoned(ctx context.Context, client kubernetes.Interface, now time.Time) error {
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: labelProbe})
	if err != nil {
		return fmt.Errorf("look for objects of earlier runs: %w", err)
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if !strings.HasPrefix(ns.Name, probePrefix) || ns.DeletionTimestamp != nil || !isAbandoned(ns.Annotations[annotationOwner], now.Sub(ns.CreationTimestamp.Time)) {
			continue
		}
		if err := removeNamespace(ctx, client, ns.Name); err != nil {
			return fmt.Errorf("remove the objects of an earlier run: %w", err)
		}
	}
	return nil
}

// isAbandoned reports whether the doctor with an owner ("user@host, pid") has exited. A doctor on another computer counts as exited if its
// namespace is older than abandoned.
func isAbandoned(owner string, age time.Duration) bool {
	who, pid, ok := strings.Cut(owner, ", pid ")
	host, err := os.Hostname()
	if !ok || err != nil || who[strings.LastIndex(who, "@")+1:] != host {
		return age > abandoned
	}
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil || n <= 0 {
		return age > abandoned
	}
	return age > abandoned || n != os.Getpid() && errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

// exec runs netcheck in a pod. If netcheck fails, the error contains its message.
func (p *probe) exec(ctx context.Context, pod *corev1.Pod, args ...string) error {
	var errOut bytes.Buffer
	err := stream.Exec(ctx, p.c.Kube, stream.Command{Namespace: pod.Namespace, Pod: pod.Name, Container: probeName, Args: append([]string{"/netcheck"}, args...), Stdout: io.Discard, Stderr: &errOut})
	if _, ended := errors.AsType[*stream.ExitError](err); ended {
		said := strings.TrimSpace(errOut.String())
		if at := strings.Index(said, "netcheck: "); at >= 0 {
			said = said[at+len("netcheck: "):]
		}
		return answered{said}
	}
	return err
}

// answered is an error message of the program in a pod. The pod could be queried, but the program's request failed.
type answered struct{ said string }

func (e answered) Error() string { return e.said }

func labelsOf(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "paictl-doctor"}
}

func probePod(image string) corev1.PodSpec {
	yes, no, user := true, false, int64(65534)
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return corev1.PodSpec{
		AutomountServiceAccountToken:  &no,
		TerminationGracePeriodSeconds: new(int64),
		EnableServiceLinks:            &no,
		SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		NodeSelector:                  map[string]string{corev1.LabelOSStable: "linux"},
		// Run on every machine, even if taints keep other pods away.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: probeName, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/netcheck", "serve"},
			Env:             []corev1.EnvVar{field("POD_NAME", "metadata.name"), field("NODE_NAME", "spec.nodeName"), field("POD_IP", "status.podIP")},
			Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: probePort}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			Resources:       probeResources(),
		}},
	}
}

func probeSet(image string) *appsv1.DaemonSet {
	// The pods have no readiness probe, because this check doesn't test whether a machine can reach its own pods.
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Labels: labelsOf(probeName)},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labelsOf(probeName)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(probeName)}, Spec: probePod(image)},
		},
	}
}

func probeService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Labels: labelsOf(probeName)},
		Spec:       corev1.ServiceSpec{Selector: labelsOf(probeName), Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(probePort)}}},
	}
}

func closedPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: closedName},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: labelsOf(closedName)}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}
