package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

func kubernetesChecks() []*Check {
	return []*Check{
		{
			ID: "api-server", Group: "kubernetes", Title: "The API server answers",
			Examines: "one request to the API, and the API server's health (/readyz)",
			Run:      apiServer,
		},
		{
			ID: "api-servers", Group: "kubernetes", Title: "Each master's API server answers", Needs: Machines,
			Examines: "the API server of each machine of the control plane, by a request on that machine",
			Run:      apiServers,
		},
		{
			ID: "nodes-ready", Group: "kubernetes", Title: "Nodes are Ready", Needs: API,
			Examines: "the condition Ready of each node, and why it isn't true",
			Run:      nodesReady,
		},
		{
			ID: "nodes-pressure", Group: "kubernetes", Title: "Nodes aren't under pressure", Needs: API,
			Examines: "the conditions DiskPressure, MemoryPressure, PIDPressure and NetworkUnavailable of each node, and those of node-problem-detector",
			Run:      nodesPressure,
		},
		{
			ID: "nodes-cordoned", Group: "kubernetes", Title: "Nodes take pods", Needs: API,
			Examines: "nodes that are cordoned, and whether a run of paictl that has ended left them so",
			Run:      nodesCordoned,
		},
		{
			ID: "control-plane", Group: "kubernetes", Title: "The control plane's pods run", Needs: API,
			Examines: "API server, controller manager, scheduler and etcd of each master, where they are pods",
			Run:      controlPlane,
		},
		{
			ID: "system-workloads", Group: "kubernetes", Title: "Kubernetes' own workloads run", Needs: API,
			Examines: "Deployments and DaemonSets in kube-system and kube-flannel: CoreDNS, kube-proxy, the pod network",
			Run:      systemWorkloads,
		},
		{
			ID: "certificates", Group: "kubernetes", Title: "Certificates are valid for long enough", Needs: Machines,
			Examines: fmt.Sprintf("all certificates of Kubernetes and etcd on each machine: a warning below %d days, a problem below %d", checks.CertificateWarning, checks.CertificateProblem),
			Run:      certificates,
		},
		{
			ID: "certificate-renewal", Group: "kubernetes", Title: "Certificates are renewed automatically", Needs: Machines,
			Examines: "whether the kubelet renews its certificate, and the timer that renews those of masters",
			Run:      certificateRenewal,
		},
		{
			ID: "kubeconfig-certificate", Group: "kubernetes", Title: "The kubeconfig in use is valid for long enough", Needs: API,
			Examines: "the client certificate of the kubeconfig that the doctor uses, if it has one",
			Run:      kubeconfigCertificate,
		},
		{
			ID: "version-skew", Group: "kubernetes", Title: "Versions are compatible", Needs: API,
			Examines: "the versions of kubelets, compared with the API server (not newer, three minor versions older at most), and whether they and containerd have one version each",
			Run:      versionSkew,
		},
		{
			ID: "configured-version", Group: "kubernetes", Title: "Kubernetes has the configured version", Needs: API | Managed,
			Examines: "the version of the API server and of the kubelets, compared with kubernetes-configuration.yaml",
			Run:      configuredVersion,
		},
	}
}

func apiServer(ctx context.Context, c *Cluster) ([]Finding, error) {
	switch {
	case c.Kube == nil && c.apiErr == nil:
		return skip("there is no kubeconfig"), nil
	case c.Kube == nil:
		return []Finding{problem("", hint.Of(c.apiErr), "the API can't be reached: %v", c.apiErr)}, nil
	case apierrors.IsUnauthorized(c.apiErr):
		return []Finding{problem("", hint.Of(c.apiErr), "%v", c.apiErr)}, nil
	case c.apiErr != nil:
		remedy := hint.Of(c.apiErr)
		if c.Spec != nil {
			remedy = "on a master: systemctl status kubelet; crictl ps -a | grep -e kube-apiserver -e etcd; crictl logs of the containers that aren't Running"
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
			out = append(out, problem(m.Hostname, "on the machine: crictl ps -a | grep kube-apiserver, then crictl logs CONTAINER; it needs etcd there: paictl doctor --only etcd-members,etcd-health -p "+shell.Word(c.Dir),
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
			evidence = rules.WithTerm(ready.Reason) + ": " + ready.Message
			if ready.Status == corev1.ConditionUnknown {
				if message = "the node hasn't reported yet"; !ready.LastTransitionTime.IsZero() {
					message = "the node hasn't reported since " + ready.LastTransitionTime.UTC().Format(time.RFC3339)
				}
				remedy = "see whether the machine is up; there: systemctl status kubelet; if it is lost permanently: "
				if c.listed(n.Name) || c.Config == nil {
					remedy += "paictl node remove " + n.Name
				} else {
					remedy += "list it in layout.yaml, then run paictl node remove " + n.Name
				}
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
	for i := range nodes {
		for _, cond := range nodes[i].Status.Conditions {
			if cond.Status != corev1.ConditionTrue || cond.Type == checks.ConditionGPUsUnhealthy || cond.Type == checks.ConditionNextBoot {
				continue // other checks show the conditions of agents
			}
			if remedy, bad := checks.Condition(string(cond.Type)); bad {
				out = append(out, problem(nodes[i].Name, remedy, "the node has the condition %s", cond.Type).seen(rules.WithTerm(cond.Reason)+": "+cond.Message))
			}
		}
	}
	return out, nil
}

// driverMark is an annotation of nodes that "node driver" has cordoned.
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
			out = append(out, warning(n.Name, "when its repair is done: "+hint.Uncordon(n.Name), "the node is cordoned: no pod starts there"))
		case c.Inspection != nil && c.Inspection.Status.Lock != nil:
			out = append(out, note(n.Name, "cordoned by a running paictl"))
		default:
			f := warning(n.Name, "paictl node driver upgrade "+n.Name+" -p DIR continues it; to use it as it is: "+hint.Uncordon(n.Name),
				"the node is cordoned by an unfinished upgrade of its driver")
			if c.Inspection != nil { // without a check, the doctor can't know whether the run is still active
				f = f.fixedBy(&Fix{What: "uncordon " + n.Name + ", which an upgrade of its driver has left cordoned", do: func(ctx context.Context, c *Cluster) error { return uncordon(ctx, c, n.Name) }})
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

func (c *Cluster) listed(name string) bool {
	return c.Config != nil && slices.ContainsFunc(c.Config.Layout.MachineList, func(m machineOf) bool { return m.Hostname == name })
}

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
