package doctor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	// pairsAll is the maximum number of machines for which all pairs are tested. With more machines, each machine tests pairsEach other machines.
	pairsAll  = 30
	pairsEach = 4
	// giveUp is the number of failures that ends the test of a pod. The number is small because each failure takes seconds.
	giveUp = 4
	// large is the size of a request in bytes that needs several packets with any usual MTU.
	large = 12000
	// tunnel is the number of bytes that VXLAN adds to each packet.
	tunnel = 50
)

func networkChecks() []*Check {
	return []*Check{
		{
			ID: "pods-start", Group: "network", Title: "A pod starts on each machine", Needs: API | Pods,
			Examines: "whether a pod of the doctor becomes ready on each node that is Ready, within 90 s",
			Run:      podsStart,
		},
		{
			ID: "dns", Group: "network", Title: "Pods on each machine resolve names", Needs: API | Pods,
			Examines: "the name kubernetes.default.svc, asked by a pod on each machine",
			Run:      dns, Limit: checkLimit * 2,
		},
		{
			ID: "pod-network", Group: "network", Title: "Pods reach each other across machines", Needs: API | Pods,
			Examines: fmt.Sprintf("HTTP from the pod on each machine to that on each other; above %d machines from each to %d others, chosen at random", pairsAll, pairsEach),
			Run:      podNetwork, Limit: checkLimit * 5,
		},
		{
			ID: "service-network", Group: "network", Title: "Pods reach services", Needs: API | Pods,
			Examines: "HTTP from a pod on each machine to the address of a service in front of all of them (kube-proxy or its replacement)",
			Run:      serviceNetwork, Limit: checkLimit * 2,
		},
		{
			ID: "mtu", Group: "network", Title: "Packet sizes (MTU) match", Needs: Machines,
			Examines: "the MTU of each machine's interface, of flannel's tunnel (50 less) and of the pods' bridge, and whether machines agree",
			Run:      mtu,
		},
		{
			ID: "network-policies", Group: "network", Title: "NetworkPolicies are enforced, or known not to be", Needs: API | Pods,
			Examines: "whether a pod can be reached that a NetworkPolicy closes. With flannel it can, which is only reported; with a network that claims to enforce them it is a problem",
			Run:      networkPolicies,
		},
	}
}

func probeResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// ready returns the doctor's pods. If no pods exist, the findings contain the reason.
func (c *Cluster) ready() ([]corev1.Pod, []Finding) {
	switch {
	case c.pods == nil:
		return nil, skip("no pods were started")
	case c.pods.err != nil || len(c.pods.pods) == 0:
		return nil, skip("the doctor's pods didn't start: see pods-start")
	}
	return c.pods.pods, nil
}

func podsStart(_ context.Context, c *Cluster) (out []Finding, _ error) {
	p := c.pods
	if p == nil {
		return skip("no pods were started"), nil
	}
	missing := 0
	for _, node := range sortedKeys(p.lacking) {
		why := p.lacking[node]
		if why.image {
			missing++
		}
		remedy := "see why: kubectl get events -A --field-selector type=Warning; on the machine: journalctl -u kubelet -u containerd -n 50"
		if why.image {
			remedy = "paictl cluster up --limit " + node + " imports the bundle's images again"
			if c.Spec == nil {
				remedy = "push the image to a registry that the nodes can reach, and name it with --image"
			}
		}
		out = append(out, problem(node, remedy, "no pod of the doctor starts there within %s", podsWithin).seen(why.why))
	}
	// If paictl didn't install the cluster, nodes without paictl's image are not a problem.
	if c.Spec == nil && len(out) > 0 && missing == len(out) && len(p.pods) == 0 {
		return skip("the nodes can't get the image %s: push it to a registry that they can reach, and name it with --image", c.Image), nil
	}
	if len(out) == 0 && p.err != nil {
		return nil, p.err
	}
	return out, nil
}

// onEach runs ask for each pod, with a limited number of pods at a time. It returns the findings in the order of the pods.
func (c *Cluster) onEach(ctx context.Context, pods []corev1.Pod, ask func(context.Context, *corev1.Pod) []Finding) []Finding {
	found := make([][]Finding, len(pods))
	slots := make(chan struct{}, asks)
	var wg sync.WaitGroup
	for i := range pods {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			found[i] = ask(ctx, &pods[i])
		})
	}
	wg.Wait()
	return slices.Concat(found...)
}

// unasked returns a finding if a pod could not be queried. It returns nil if err is an error message of the program in the pod.
func unasked(pod *corev1.Pod, err error) []Finding {
	if _, said := err.(answered); said { //nolint:errorlint // it is never wrapped
		return nil
	}
	return []Finding{warning(pod.Spec.NodeName, "the API server must reach the kubelet on port 10250 of the machine; journalctl -u kubelet there", "the pod there could not be asked: kubectl exec and logs don't work either").seen(err.Error())}
}

func dns(ctx context.Context, c *Cluster) ([]Finding, error) {
	pods, why := c.ready()
	if why != nil {
		return why, nil
	}
	found := c.onEach(ctx, pods, func(ctx context.Context, pod *corev1.Pod) []Finding {
		err := c.pods.exec(ctx, pod, "resolve", "-timeout", "15s", "kubernetes.default.svc")
		if err == nil {
			return nil
		}
		if out := unasked(pod, err); out != nil {
			return out
		}
		return []Finding{problem(pod.Spec.NodeName, "kubectl -n kube-system get pods -o wide -l k8s-app=kube-dns; kubectl -n kube-system logs -l k8s-app=kube-dns. Where CoreDNS runs: see pod-network and service-network for that machine",
			"pods there can't resolve names").seen(err.Error())}
	})
	if len(found) == len(pods) && len(pods) > 1 {
		f := found[0]
		if f.Verdict == Problem {
			f.Where, f.Message = "", "pods on all machines can't resolve names: CoreDNS doesn't answer"
			f.Remedy = "kubectl -n kube-system get deployment,pods -l k8s-app=kube-dns; kubectl -n kube-system logs -l k8s-app=kube-dns; paictl cluster up installs CoreDNS again if it was removed"
			return []Finding{f}, ctx.Err()
		}
	}
	return found, ctx.Err()
}

// pairs returns, for each of n pods, the indices of the pods that it should reach.
func pairs(n int, random *rand.Rand) [][]int {
	out := make([][]int, n)
	for i := range n {
		if n <= pairsAll {
			for j := range n {
				if j != i {
					out[i] = append(out[i], j)
				}
			}
			continue
		}
		// Take the next pod in a ring, so that each pod is tested. Choose other pods at random.
		out[i] = []int{(i + 1) % n}
		for len(out[i]) < pairsEach {
			if j := random.IntN(n); j != i && !slices.Contains(out[i], j) {
				out[i] = append(out[i], j)
			}
		}
	}
	return out
}

type broken struct {
	from, to string
	size     bool // small packets arrive
	said     string
}

func podNetwork(ctx context.Context, c *Cluster) ([]Finding, error) {
	pods, why := c.ready()
	if why != nil {
		return why, nil
	}
	if len(pods) == 1 {
		return skip("there is one machine with a pod"), nil
	}
	which := pairs(len(pods), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))) //nolint:gosec // a sample
	var mu sync.Mutex
	var bad []broken
	tried := 0
	at := map[string]int{}
	for i := range pods {
		at[pods[i].Name] = i
	}
	found := c.onEach(ctx, pods, func(ctx context.Context, pod *corev1.Pod) []Finding {
		failed := 0
		for _, j := range which[at[pod.Name]] {
			if ctx.Err() != nil || failed == giveUp {
				return nil
			}
			to := &pods[j]
			b, err := c.reach(ctx, pod, to)
			if out := unaskedUnless(pod, err); out != nil {
				return out
			}
			mu.Lock()
			tried++
			if b != nil {
				bad = append(bad, *b)
				failed++
			}
			mu.Unlock()
		}
		return nil
	})
	if ctx.Err() != nil {
		return found, ctx.Err()
	}
	found = append(found, tell(bad, len(pods))...)
	if len(found) == 0 && len(pods) > pairsAll {
		found = append(found, note("", "%s of %d were tried", plural.Of(tried, "pair"), len(pods)*(len(pods)-1)))
	}
	return found, nil
}

func unaskedUnless(pod *corev1.Pod, err error) []Finding {
	if err == nil {
		return nil
	}
	return unasked(pod, err)
}

func address(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(probePort))
}

// reach tests one pair with a request of many packets. If that request fails, reach also tests the pair with a short request.
func (c *Cluster) reach(ctx context.Context, from, to *corev1.Pod) (*broken, error) {
	base := "http://" + address(to) + "/"
	err := c.pods.exec(ctx, from, "get", "-timeout", "4s", base+"?"+strings.Repeat("x", large))
	if err == nil {
		return nil, nil
	}
	if unasked(from, err) != nil {
		return nil, err
	}
	b := &broken{from: from.Spec.NodeName, to: to.Spec.NodeName, said: strings.ReplaceAll(err.Error(), "?"+strings.Repeat("x", large), "")}
	if err := c.pods.exec(ctx, from, "get", "-timeout", "4s", base); err == nil {
		b.size = true
	}
	return b, nil
}

// tell returns one finding for each machine whose connections to most other machines fail, and one finding for each remaining pair.
func tell(bad []broken, machines int) (out []Finding) {
	in, from := map[string]int{}, map[string]int{}
	size := map[string]bool{}
	for _, b := range bad {
		in[b.to]++
		from[b.from]++
		size[b.to] = size[b.to] || b.size
		size[b.from] = size[b.from] || b.size
	}
	const (
		path  = "look at the pod network's pod there (kubectl get pods -A -o wide), and whether a firewall lets UDP 8472 (flannel's VXLAN) pass between the machines"
		sizes = "the MTU between the machines is smaller than their interfaces say: paictl doctor --only mtu; correct it on the machines, the switch, or in the pod network's settings"
	)
	told := map[string]bool{}
	for _, name := range sortedKeys(in) {
		if machines > 2 && in[name] >= max(2, (machines-1)/2) { // most of its pairs fail, while others work
			told[name] = true
			f := problem(name, path, "pods there and on other machines don't reach each other (%d pairs)", in[name]+from[name])
			if size[name] {
				f = problem(name, sizes, "large packets don't pass between pods there and on other machines (%d pairs)", in[name]+from[name])
			}
			for _, b := range bad {
				if b.to == name {
					f = f.seen("from " + b.from + ": " + b.said)
					break
				}
			}
			out = append(out, f)
		}
	}
	if len(told) == machines { // the same for all machines: one finding
		f := problem("", path, "pods on different machines don't reach each other (%d pairs)", len(bad)).seen(bad[0].said)
		return []Finding{f}
	}
	const most = 10
	left := 0
	for _, b := range bad {
		switch {
		case told[b.from] || told[b.to]:
		case left < most && b.size:
			left++
			out = append(out, problem(b.from, sizes, "large packets don't pass from pods there to pods on %s", b.to).seen(b.said))
		case left < most:
			left++
			out = append(out, problem(b.from, path, "pods there don't reach pods on %s", b.to).seen(b.said))
		default:
			left++
		}
	}
	if left > most {
		out = append(out, problem("", path, "%s more don't reach each other", plural.Of(left-most, "pair")))
	}
	return out
}

func serviceNetwork(ctx context.Context, c *Cluster) ([]Finding, error) {
	pods, why := c.ready()
	if why != nil {
		return why, nil
	}
	if c.pods.svc == nil || c.pods.svc.Spec.ClusterIP == "" {
		return skip("the service has no address"), nil
	}
	url := "http://" + net.JoinHostPort(c.pods.svc.Spec.ClusterIP, "80") + "/"
	out := c.onEach(ctx, pods, func(ctx context.Context, pod *corev1.Pod) []Finding {
		// A pod behind the service may be on an unreachable machine. A retry may then use another pod.
		err := c.pods.exec(ctx, pod, "get", "-timeout", "20s", url)
		if err == nil {
			return nil
		}
		if out := unasked(pod, err); out != nil {
			return out
		}
		return []Finding{problem(pod.Spec.NodeName, "look at kube-proxy on that machine: kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy, and its log", "pods there don't reach services").seen(err.Error())}
	})
	return out, ctx.Err()
}

func mtu(_ context.Context, c *Cluster) (out []Finding, _ error) {
	by := map[string][]string{}
	for _, m := range c.machines() {
		links := map[string]int{}
		for _, row := range m.all("link", 2) {
			links[row[0]], _ = strconv.Atoi(row[1])
		}
		own := links[m.value("own")]
		if own == 0 {
			continue
		}
		by[strconv.Itoa(own)] = append(by[strconv.Itoa(own)], m.Hostname)
		if t := links["flannel.1"]; t > own-tunnel {
			out = append(out, problem(m.Hostname, "restart flannel there: kubectl -n kube-flannel delete pod -l app=flannel --field-selector spec.nodeName="+m.Hostname,
				"flannel's tunnel has packets of %d bytes, but the interface below it of %d: large ones are lost", t, own))
		}
		if t, bridge := links["flannel.1"], links["cni0"]; t > 0 && bridge > t {
			out = append(out, problem(m.Hostname, "restart the machine, or its pods after: ip link set cni0 mtu "+strconv.Itoa(t),
				"the pods' bridge has packets of %d bytes, and the tunnel of %d", bridge, t))
		}
	}
	if f := mixed("MTUs of interfaces", by, "give all machines' interfaces, and the switch, the same MTU"); f != nil {
		f.Message = strings.Replace(f.Message, plural.Of(len(by), "version"), plural.Of(len(by), "kind"), 1)
		out = append(out, *f)
	}
	return out, nil
}

// enforcers lists parts of the names of DaemonSets that enforce NetworkPolicies.
var enforcers = []string{"calico", "canal", "cilium", "antrea", "weave", "kube-router", "ovn", "network-polic", "azure-npm"}

func networkPolicies(ctx context.Context, c *Cluster) ([]Finding, error) {
	pods, why := c.ready()
	if why != nil {
		return why, nil
	}
	if c.pods.closed == nil {
		return skip("the pod behind the NetworkPolicy didn't start"), nil
	}
	sets, err := c.Kube.Client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the DaemonSets: %w", err)
	}
	claims := ""
	for i := range sets.Items {
		if slices.ContainsFunc(enforcers, func(part string) bool { return strings.Contains(sets.Items[i].Name, part) }) {
			claims = sets.Items[i].Namespace + "/" + sets.Items[i].Name
		}
	}
	// Send from another machine if possible, because NetworkPolicies may only affect packets between machines.
	from := &pods[0]
	for i := range pods {
		if pods[i].Spec.NodeName != c.pods.closed.Spec.NodeName {
			from = &pods[i]
			break
		}
	}
	err = c.pods.exec(ctx, from, "get", "-timeout", "5s", "http://"+address(c.pods.closed)+"/")
	if err != nil {
		if out := unasked(from, err); out != nil {
			return out, nil
		}
		if claims == "" && c.Config != nil && c.Config.Kubernetes.Kubernetes.NetworkPlugin == flannel {
			return skip("the pod can't be reached, and flannel enforces no NetworkPolicies: see pod-network"), nil
		}
		return []Finding{note("", "NetworkPolicies are enforced")}, nil
	}
	if claims != "" {
		return []Finding{problem("", "look at the log of "+claims+": kubectl -n "+strings.Replace(claims, "/", " logs daemonset/", 1), "NetworkPolicies aren't enforced, although %s should do it: blocked connections are possible", claims)}, nil
	}
	return []Finding{note("", "NetworkPolicies aren't enforced: the pod network doesn't support them. Services are protected by passwords and tokens")}, nil
}

const flannel = "flannel"
