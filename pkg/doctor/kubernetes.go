package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/nodelabels"
	"github.com/openpai/paictl/pkg/plural"
)

// Days that a certificate must have left. Those of the kubelet are renewed with a third of their life left at the latest, those of the
// control plane by paictl's timer with 60 days left: below that, renewal doesn't work.
const (
	certificateWarning = 21
	certificateProblem = 7
)

func kubernetesChecks() []*Check {
	return []*Check{
		{
			ID: "api-server", Group: "kubernetes", Title: "The API server answers",
			Looks: "one request to the API, and what the server says of its own health (/readyz)",
			Run:   apiServer,
		},
		{
			ID: "api-servers", Group: "kubernetes", Title: "Each master's API server answers", Needs: Machines,
			Looks: "the API server of each machine of the control plane, asked on that machine",
			Run:   apiServers,
		},
		{
			ID: "nodes-ready", Group: "kubernetes", Title: "Nodes are Ready", Needs: API,
			Looks: "the condition Ready of each node, and why it isn't true",
			Run:   nodesReady,
		},
		{
			ID: "nodes-pressure", Group: "kubernetes", Title: "Nodes aren't under pressure", Needs: API,
			Looks: "the conditions DiskPressure, MemoryPressure, PIDPressure and NetworkUnavailable of each node",
			Run:   nodesPressure,
		},
		{
			ID: "nodes-cordoned", Group: "kubernetes", Title: "Nodes take pods", Needs: API,
			Looks: "nodes that are cordoned, and whether a run of paictl that has ended left them so",
			Run:   nodesCordoned,
		},
		{
			ID: "control-plane", Group: "kubernetes", Title: "The control plane's pods run", Needs: API,
			Looks: "API server, controller manager, scheduler and etcd of each master, where they are pods",
			Run:   controlPlane,
		},
		{
			ID: "system-workloads", Group: "kubernetes", Title: "Kubernetes' own workloads run", Needs: API,
			Looks: "Deployments and DaemonSets in kube-system and kube-flannel: CoreDNS, kube-proxy, the pod network",
			Run:   systemWorkloads,
		},
		{
			ID: "certificates", Group: "kubernetes", Title: "Certificates are valid for long enough", Needs: Machines,
			Looks: fmt.Sprintf("all certificates of Kubernetes and etcd on each machine: a warning below %d days, a problem below %d", certificateWarning, certificateProblem),
			Run:   certificates,
		},
		{
			ID: "certificate-renewal", Group: "kubernetes", Title: "Certificates are renewed without a person", Needs: Machines,
			Looks: "whether the kubelet renews its certificate, and the timer that renews those of masters",
			Run:   certificateRenewal,
		},
		{
			ID: "kubeconfig-certificate", Group: "kubernetes", Title: "The kubeconfig in use is valid for long enough", Needs: API,
			Looks: "the client certificate of the kubeconfig with which the doctor asks, where it has one",
			Run:   kubeconfigCertificate,
		},
		{
			ID: "version-skew", Group: "kubernetes", Title: "Versions go together", Needs: API,
			Looks: "kubelets beside the API server (not newer, three minor versions older at most), and whether they and containerd are of one version each",
			Run:   versionSkew,
		},
		{
			ID: "configured-version", Group: "kubernetes", Title: "Kubernetes has the configured version", Needs: API | Managed,
			Looks: "the version of the API server and of the kubelets beside kubernetes-configuration.yaml",
			Run:   configuredVersion,
		},
	}
}

func apiServer(ctx context.Context, c *Cluster) ([]Finding, error) {
	switch {
	case c.Kube == nil && c.apiErr == nil:
		return skip("there is no kubeconfig"), nil
	case c.Kube == nil:
		return []Finding{problem("", hint.Of(c.apiErr), "there is no way to the API: %v", c.apiErr)}, nil
	case c.apiErr != nil:
		remedy := hint.Of(c.apiErr)
		if c.Spec != nil {
			remedy = "on a master: systemctl status kubelet; crictl ps -a | grep -e kube-apiserver -e etcd; crictl logs of what isn't Running"
		}
		return []Finding{problem("", remedy, "the API server at %s doesn't answer", c.Kube.Server).seen(c.apiErr.Error())}, nil
	}
	status := 0
	raw, err := c.Kube.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").Do(ctx).StatusCode(&status).Raw()
	if err == nil || status == http.StatusForbidden {
		return nil, nil
	}
	var failed []string
	for line := range strings.Lines(string(raw) + "\n" + err.Error()) {
		if name, bad := strings.CutPrefix(strings.TrimSpace(line), "[-]"); bad {
			failed = append(failed, name)
		}
	}
	return []Finding{problem("", "on a master: crictl logs of the container kube-apiserver; etcd is below it: paictl doctor --only etcd-members,etcd-health",
		"the API server says that it isn't ready: %s", strings.Join(failed, "; "))}, nil
}

func apiServers(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		if !m.ControlPlane || !c.joined(m.Hostname) {
			continue
		}
		if state, said := m.api(); state == "down" {
			out = append(out, problem(m.Hostname, "on the machine: crictl ps -a | grep kube-apiserver, then crictl logs CONTAINER; it needs etcd there: paictl doctor --only etcd-members,etcd-health -p "+word(c.Dir),
				"its API server doesn't answer").seen(said))
		}
	}
	return out, nil
}

func nodesReady(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		n := &nodes[i]
		ready := condition(n, corev1.NodeReady)
		if ready != nil && ready.Status == corev1.ConditionTrue {
			continue
		}
		remedy := "on the machine: systemctl status kubelet containerd; journalctl -u kubelet -n 50"
		message := "the node is NotReady"
		evidence := "it has no condition Ready"
		if ready != nil {
			evidence = ready.Reason + ": " + ready.Message
			if ready.Status == corev1.ConditionUnknown {
				message = "the node is silent since " + ready.LastTransitionTime.UTC().Format(time.RFC3339)
				remedy = "see whether the machine is up; there: systemctl status kubelet; where it is lost for good: paictl node remove " + n.Name
			}
		}
		out = append(out, problem(n.Name, remedy, "%s", message).seen(evidence))
	}
	return out, nil
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func isReady(n *corev1.Node) bool {
	r := condition(n, corev1.NodeReady)
	return r != nil && r.Status == corev1.ConditionTrue
}

func nodesPressure(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	remedies := map[corev1.NodeConditionType]string{
		corev1.NodeDiskPressure:       "free room on the machine: paictl doctor --only disk-space names the file system; crictl rmi --prune removes images that no one uses",
		corev1.NodeMemoryPressure:     "see which pods use the most: kubectl top pods -A, or ps --sort=-rss on the machine",
		corev1.NodePIDPressure:        "see which pod has so many processes: ps -e on the machine",
		corev1.NodeNetworkUnavailable: "look at the pod network's pod on that machine: kubectl get pods -A -o wide",
	}
	for i := range nodes {
		for _, cond := range nodes[i].Status.Conditions {
			if remedy, bad := remedies[cond.Type]; bad && cond.Status == corev1.ConditionTrue {
				out = append(out, problem(nodes[i].Name, remedy, "the node has the condition %s", cond.Type).seen(cond.Reason+": "+cond.Message))
			}
		}
	}
	return out, nil
}

// driverMark is on nodes that "node driver" has cordoned, and on no others.
const driverMark = "paictl.openpai.org/driver-upgrade"

func nodesCordoned(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		n := &nodes[i]
		switch {
		case !n.Spec.Unschedulable:
		case n.Annotations[driverMark] == "":
			out = append(out, warning(n.Name, "when its repair is done: kubectl uncordon "+n.Name, "the node is cordoned: no pod starts there"))
		case c.Look != nil && c.Look.Status.Lock != nil:
			out = append(out, note(n.Name, "cordoned by a run of paictl that is at work"))
		default:
			f := warning(n.Name, "paictl node driver upgrade --limit "+n.Name+" goes on with it; to use it as it is: kubectl uncordon "+n.Name,
				"the node is cordoned by an exchange of its driver that didn't end")
			if c.Look != nil { // else no one knows whether the run is still at work
				f = f.fixedBy(&Fix{What: "uncordon " + n.Name + ", which an exchange of its driver has left cordoned", do: func(ctx context.Context, c *Cluster) error { return uncordon(ctx, c, n.Name) }})
			}
			out = append(out, f)
		}
	}
	return out, nil
}

func uncordon(ctx context.Context, c *Cluster, name string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}},"spec":{"unschedulable":null}}`, driverMark)
	_, err := c.Kube.Client.CoreV1().Nodes().Patch(ctx, name, mergePatch, []byte(patch), metav1.PatchOptions{})
	return err
}

func controlPlane(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	list, err := c.Kube.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "tier=control-plane"})
	if err != nil {
		return nil, fmt.Errorf("list the control plane's pods: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if ready, why := podReady(p); !ready {
			if starting(p, c.Now()) {
				out = append(out, note(p.Name, "is starting on %s", p.Spec.NodeName))
				continue
			}
			where := p.Name
			out = append(out, problem(where, fmt.Sprintf("on %s: crictl ps -a | grep %s, then crictl logs CONTAINER; its manifest is in /etc/kubernetes/manifests", p.Spec.NodeName, p.Labels["component"]),
				"isn't ready on %s", p.Spec.NodeName).seen(why))
		}
	}
	if c.Spec == nil {
		if len(list.Items) == 0 {
			return skip("the control plane isn't pods of the cluster"), nil
		}
		return out, nil
	}
	for _, n := range c.Spec.ControlPlane() {
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
			if c.joined(n.Hostname) && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Hostname && p.Labels["component"] == component }) {
				out = append(out, problem(n.Hostname, "look whether /etc/kubernetes/manifests/"+component+".yaml is there on the machine; paictl cluster up brings it back", "%s has no pod on this master", component))
			}
		}
	}
	return out, nil
}

// podReady reports whether a pod is ready, and says why not.
func podReady(p *corev1.Pod) (bool, string) {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return true, ""
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "PodInitializing":
			return false, strings.TrimSuffix(s.State.Waiting.Reason+": "+s.State.Waiting.Message, ": ")
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return false, fmt.Sprintf("%s with exit code %d", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
		}
	}
	for _, cond := range p.Status.Conditions {
		if cond.Status == corev1.ConditionFalse && cond.Message != "" {
			return false, cond.Message
		}
	}
	return false, string(p.Status.Phase)
}

// starting reports whether a pod that isn't ready has had no time to be it yet, and nothing has gone wrong so far.
func starting(p *corev1.Pod, now time.Time) bool {
	since := p.CreationTimestamp.Time
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" && s.State.Waiting.Reason != "PodInitializing",
			s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return false
		case s.State.Running != nil && s.State.Running.StartedAt.After(since):
			since = s.State.Running.StartedAt.Time
		}
	}
	return now.Sub(since) < settles
}

// young reports whether all pods of a workload that aren't ready are starting, and there is one.
func young(pods []corev1.Pod, namespace string, selector *metav1.LabelSelector, now time.Time) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	found := false
	for i := range pods {
		p := &pods[i]
		if p.Namespace != namespace || !s.Matches(labels.Set(p.Labels)) {
			continue
		}
		if ready, _ := podReady(p); !ready {
			found = true
			if !starting(p, now) {
				return false
			}
		}
	}
	return found
}

// settles is how long a workload may take to replace its pods before that is news.
const settles = 2 * time.Minute

func systemWorkloads(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	for _, ns := range []string{metav1.NamespaceSystem, "kube-flannel"} {
		deployments, err := c.Kube.Client.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the Deployments of %s: %w", ns, err)
		}
		sets, err := c.Kube.Client.AppsV1().DaemonSets(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the DaemonSets of %s: %w", ns, err)
		}
		look := func(kind, name string, selector *metav1.LabelSelector, ready, want int32) {
			if ready >= want {
				return
			}
			if young(pods, ns, selector, c.Now()) {
				out = append(out, note(ns+"/"+name, "is starting: %d of %s ready", ready, plural.Of(want, "pod")))
				return
			}
			verdict := problem
			if ready > 0 && kind == "deployment" {
				verdict = warning
			}
			out = append(out, verdict(ns+"/"+name, fmt.Sprintf("see why: kubectl -n %s describe %s %s, and the events of its pods", ns, kind, name), "%d of %s ready", ready, plural.Of(want, "pod")))
		}
		for _, d := range deployments.Items {
			want := int32(1)
			if d.Spec.Replicas != nil {
				want = *d.Spec.Replicas
			}
			look("deployment", d.Name, d.Spec.Selector, d.Status.ReadyReplicas, want)
		}
		for _, d := range sets.Items {
			look("daemonset", d.Name, d.Spec.Selector, d.Status.NumberReady, d.Status.DesiredNumberScheduled)
		}
	}
	return out, nil
}

func certificates(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, cert := range c.Look.Status.Certificates {
		var f Finding
		switch {
		case cert.Error != "":
			f = warning(cert.Host, "look at the file on the machine; paictl cluster up makes those that are missing", "the certificate %s can't be read: %s", cert.Name, cert.Error)
		case cert.Expired:
			f = problem(cert.Host, renewal(&cert), "the certificate %s has expired", cert.Name)
		case cert.Days < certificateProblem:
			f = problem(cert.Host, renewal(&cert), "the certificate %s expires in %s", cert.Name, plural.Of(cert.Days, "day"))
		case cert.Days < certificateWarning:
			f = warning(cert.Host, renewal(&cert), "the certificate %s expires in %s", cert.Name, plural.Of(cert.Days, "day"))
		default:
			continue
		}
		if !cert.Expires.IsZero() {
			f = f.seen(cert.Subject + " until " + cert.Expires.Format(time.RFC3339))
		}
		out = append(out, f)
	}
	return out, nil
}

// renewal is how a certificate is renewed.
func renewal(cert *cluster.Certificate) string {
	switch {
	case cert.CA:
		return "an authority can't be renewed in place: plan a new one (docs/cluster.md), and back up /etc/kubernetes/pki before"
	case cert.Name == "kubelet":
		return "on the machine: systemctl restart kubelet; it then asks for a new one, which kubectl get csr shows. Where it has expired: paictl node remove, then paictl node add"
	}
	return "on the machine: systemctl start paictl-certificates.service, and journalctl -u paictl-certificates where that doesn't help; kubeadm certs renew all does it by hand"
}

func certificateRenewal(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, host := range c.Look.Status.Renewal.Off {
		out = append(out, warning(host, "paictl cluster up --limit "+host+" switches it on again", "its certificates aren't renewed by themselves"))
	}
	return out, nil
}

// shortLived is what a client's certificate lasts for that isn't meant to be kept.
const shortLived = 45 * 24 * time.Hour

func kubeconfigCertificate(_ context.Context, c *Cluster) ([]Finding, error) {
	cert, found := clientCertificate(c.Kube)
	if !found {
		return skip("the kubeconfig has no client certificate"), nil
	}
	if cert.NotAfter.Sub(cert.NotBefore) < shortLived {
		return skip("its certificate is short-lived by intention: who made it renews it"), nil
	}
	left := cert.NotAfter.Sub(c.Now())
	if left > certificateWarning*24*time.Hour {
		return nil, nil
	}
	f := warning("", "get a new one: paictl cluster kubeconfig -p DIR", "the certificate of context %s ends in %s", c.Kube.Context, plural.Of(int(left.Hours()/24), "day"))
	if left < certificateProblem*24*time.Hour {
		f.Verdict = Problem
	}
	return []Finding{f.seen("until " + cert.NotAfter.UTC().Format(time.RFC3339))}, nil
}

func versionSkew(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	info, err := c.Kube.Client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the API server's version: %w", err)
	}
	server, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("read the API server's version: %w", err)
	}
	kubelets, runtimes := map[string][]string{}, map[string][]string{}
	for i := range nodes {
		n := &nodes[i]
		text := n.Status.NodeInfo.KubeletVersion
		kubelets[text] = append(kubelets[text], n.Name)
		runtimes[n.Status.NodeInfo.ContainerRuntimeVersion] = append(runtimes[n.Status.NodeInfo.ContainerRuntimeVersion], n.Name)
		v, err := version.ParseGeneric(text)
		if err != nil {
			continue // a node that has just been made has none
		}
		older := int(server.Minor()) - int(v.Minor())
		switch {
		case v.Major() == server.Major() && older < 0:
			out = append(out, problem(n.Name, "bring the control plane up to date first: paictl cluster up", "its kubelet %s is newer than the API server %s", text, info.GitVersion))
		case v.Major() != server.Major() || older > 3:
			out = append(out, problem(n.Name, "paictl cluster up --limit "+n.Name, "its kubelet %s is too old for the API server %s", text, info.GitVersion))
		}
	}
	if c.Spec == nil {
		return out, nil // who keeps the cluster decides when which node is next
	}
	for what, by := range map[string]map[string][]string{"kubelets": kubelets, "container runtimes": runtimes} {
		if f := mixed(what, by, "paictl cluster up brings all machines to the same"); f != nil {
			out = append(out, *f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return out, nil
}

// mixed tells of things that should be of one version and aren't.
func mixed(what string, by map[string][]string, remedy string) *Finding {
	delete(by, "")
	if len(by) < 2 {
		return nil
	}
	var parts []string
	for _, v := range sortedKeys(by) {
		parts = append(parts, v+" on "+some(by[v]))
	}
	f := warning("", remedy, "%s are of %s: %s", what, plural.Of(len(by), "version"), strings.Join(parts, "; "))
	return &f
}

// some names a few of many.
func some(names []string) string {
	slices.Sort(names)
	if len(names) > 5 {
		return strings.Join(names[:4], ", ") + " and " + strconv.Itoa(len(names)-4) + " more"
	}
	return strings.Join(names, ", ")
}

func configuredVersion(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	want := c.Config.Kubernetes.Kubernetes.Version
	info, err := c.Kube.Client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the API server's version: %w", err)
	}
	if info.GitVersion != want {
		out = append(out, warning("", "paictl cluster plan shows what an up would change; paictl cluster up does it", "the API server is %s, and the configuration says %s", info.GitVersion, want))
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if have := nodes[i].Status.NodeInfo.KubeletVersion; have != "" && have != want && c.listed(nodes[i].Name) {
			out = append(out, warning(nodes[i].Name, "paictl cluster up --limit "+nodes[i].Name, "its kubelet is %s, and the configuration says %s", have, want))
		}
	}
	return out, nil
}

// listed reports whether a node is a machine of the folder.
func (c *Cluster) listed(name string) bool {
	return c.Config != nil && slices.ContainsFunc(c.Config.Layout.MachineList, func(m machineOf) bool { return m.Hostname == name })
}

// labelDifference says how a node's labels and taints differ from the layout.
func labelDifference(d nodelabels.Difference) string {
	var parts []string
	for _, p := range []struct {
		word string
		list []string
	}{{"labels missing", d.Set}, {"labels too many", d.Drop}, {"taints missing", d.Taint}, {"taints too many", d.Untaint}} {
		if len(p.list) > 0 {
			parts = append(parts, p.word+": "+strings.Join(p.list, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
