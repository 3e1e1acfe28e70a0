package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openpai/paictl/pkg/hint"
)

// Simulated is the kind of a node that exists only in the API.
const Simulated Kind = "simulated"

// simulatedKey and simulatedValue are the key and value of an annotation. KWOK simulates the nodes with this annotation.
const (
	simulatedKey   = "kwok.x-k8s.io/node"
	simulatedValue = "fake"
	simulatorUser  = "paictl-sandbox-simulator"
	// readyLimit is the minimum timeout until the nodes are ready. For thousands of nodes, the timeout is readyLimitPerNode times the number of nodes.
	readyLimit        = 5 * time.Minute
	readyLimitPerNode = 200 * time.Millisecond

	// notReadyTaint is the taint of a new node until the node controller detects that the node is ready.
	notReadyTaint = "node.kubernetes.io/not-ready"
)

// Node describes a node to simulate.
type Node struct {
	Name    string
	Address netip.Addr // the node's internal address; nothing listens there
	CPU     int        // logical processors
	Memory  string     // Kubernetes quantity
	GPUs    int        // the number of nvidia.com/gpu
	GPUType string     // label nvidia.com/gpu.product
	Arch    string     // Go's name; amd64 if empty
	Roles   []string   // shown as node-role.kubernetes.io/ROLE
	Labels  map[string]string
	Taints  []string // key[=value]:Effect
}

// plainNodes returns the nodes of a sandbox without a layout. These nodes have no GPUs.
func plainNodes(o Options) []Node {
	name := o.Name
	if name == "" {
		name = DefaultName
	}
	var out []Node
	addr := firstSubnet.Addr()
	for i := range min(o.Hosts, maxNodes+1) {
		addr = addr.Next()
		out = append(out, Node{Name: fmt.Sprintf("%s-%d", name, i+1), Address: addr, CPU: 16, Memory: "64Gi", Roles: []string{"worker"}})
	}
	return out
}

// object returns the Node object for the API. version is the node's version of Kubernetes.
func (n Node) object(version string) (*corev1.Node, error) {
	memory, err := resource.ParseQuantity(n.Memory)
	if err != nil {
		return nil, hint.Errorf("write a Kubernetes quantity such as 512Gi", "node %s has the memory %q: %w", n.Name, n.Memory, err)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(n.CPU), resource.DecimalSI), corev1.ResourceMemory: memory,
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	arch := n.Arch
	if arch == "" {
		arch = "amd64"
	}
	labels := map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: arch, "type": "kwok"}
	if n.GPUs > 0 {
		capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(n.GPUs), resource.DecimalSI)
		labels["nvidia.com/gpu.present"], labels["nvidia.com/gpu.product"] = "true", labelValue(n.GPUType)
	}
	for _, role := range n.Roles {
		labels["node-role.kubernetes.io/"+role] = ""
	}
	for k, v := range n.Labels {
		labels[k] = v
	}
	taints, err := parseTaints(n.Taints)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: map[string]string{simulatedKey: simulatedValue}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Address.String()}, {Type: corev1.NodeHostName, Address: n.Name}},
			NodeInfo:  corev1.NodeSystemInfo{Architecture: arch, OperatingSystem: "linux", OSImage: "simulated", KubeletVersion: version + "-simulated", KernelVersion: "simulated", ContainerRuntimeVersion: "simulated"},
		},
	}, nil
}

// labelValue converts text to a valid value of a label: at most 63 letters, digits, "-", "_" and ".".
func labelValue(text string) string {
	out := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(out[:min(len(out), 63)], "-_.")
}

func parseTaints(texts []string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, text := range texts {
		kv, effect, ok := strings.Cut(text, ":")
		key, value, _ := strings.Cut(kv, "=")
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
		if !ok || key == "" || !slices.Contains(effects, corev1.TaintEffect(effect)) {
			return nil, hint.Errorf("write key[=value]:Effect; the effect is NoSchedule, PreferNoSchedule or NoExecute", "%q is not a taint", text)
		}
		out = append(out, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return out, nil
}

// syncNodes creates, replaces and removes simulated nodes to match want. It ignores other nodes.
func syncNodes(ctx context.Context, client kubernetes.Interface, version string, want []Node) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	have := map[string]*corev1.Node{}
	for i := range list.Items {
		if n := &list.Items[i]; n.Annotations[simulatedKey] == simulatedValue {
			have[n.Name] = n
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, n := range want {
		object, err := n.object(version)
		if err != nil {
			return err
		}
		old := have[n.Name]
		delete(have, n.Name)
		if old != nil && sameNode(old, object) {
			continue
		}
		g.Go(func() error { return replaceNode(ctx, client, old, object) })
	}
	for name := range have {
		g.Go(func() error { return deleteNode(ctx, client, name) })
	}
	return g.Wait()
}

// sameNode reports whether a node in the API matches the desired node. It ignores labels and taints from Kubernetes and KWOK.
func sameNode(old, want *corev1.Node) bool {
	for k, v := range want.Labels {
		if have, ok := old.Labels[k]; !ok || have != v {
			return false
		}
	}
	for _, t := range want.Spec.Taints {
		if !slices.ContainsFunc(old.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect }) {
			return false
		}
	}
	for k, v := range want.Status.Capacity {
		if have := old.Status.Capacity[k]; have.Cmp(v) != 0 {
			return false
		}
	}
	return len(old.Status.Capacity) == len(want.Status.Capacity)
}

func replaceNode(ctx context.Context, client kubernetes.Interface, old, want *corev1.Node) error {
	if old != nil {
		if err := deleteNode(ctx, client, old.Name); err != nil {
			return err
		}
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, want, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the node %s: %w", want.Name, err)
	}
	return nil
}

func deleteNode(ctx context.Context, client kubernetes.Interface, name string) error {
	if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the node %s: %w", name, err)
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == notReadyTaint })
}

// leaseFor returns the duration of a simulated node's lease in seconds. KWOK renews the lease four times in that duration. The duration is the same
// as for a real kubelet, but longer for more than about a thousand nodes. Otherwise the renewals would overload the API server of a small machine.
func leaseFor(nodes int) int { return max(40, 40*nodes/1024) }

// waitReady waits until n nodes are ready. It watches the nodes, because repeated lists of thousands of nodes would take CPU time from the control
// plane.
func waitReady(ctx context.Context, client kubernetes.Interface, n int) error {
	if n == 0 {
		return nil
	}
	limit := max(readyLimit, time.Duration(n)*readyLimitPerNode)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ready := sets.New[string]()
	nodes := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll, fields.Everything())
	_, err := watchtools.UntilWithSync(limited, nodes, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		node, ok := e.Object.(*corev1.Node)
		switch {
		case !ok:
		case e.Type != watch.Deleted && isReady(node):
			ready.Insert(node.Name)
		default:
			ready.Delete(node.Name)
		}
		return ready.Len() >= n, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait for the simulated nodes: %d of %d are ready after %s", ready.Len(), n, limit)
	}
	return err
}

// grantSimulator gives KWOK the rights of a kubelet for all nodes, and no other rights.
func grantSimulator(ctx context.Context, client kubernetes.Interface) error {
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: simulatorUser}, Rules: []rbacv1.PolicyRule{
		rule("", []string{"nodes"}, "get", "list", "watch", "patch", "update", "delete"),
		rule("", []string{"nodes/status", "pods/status"}, "get", "patch", "update"),
		rule("", []string{"pods"}, "get", "list", "watch", "patch", "update", "delete"),
		rule("", []string{"events"}, "create", "patch", "update"),
		rule("events.k8s.io", []string{"events"}, "create", "patch", "update"),
		rule("coordination.k8s.io", []string{"leases"}, "get", "list", "watch", "create", "update", "patch", "delete"),
	}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: simulatorUser},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: simulatorUser},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: simulatorUser}}}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
