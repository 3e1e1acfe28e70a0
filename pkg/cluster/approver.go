package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/approver/machines"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// approver has the cluster sign the serving certificates of kubelets. A program on the masters approves their requests if they match the machines
// that were registered with the cluster. The phase comes before the kubelets' settings, so that no kubelet of an existing cluster waits for it. In a
// new cluster, the phase init installs the program as soon as the API runs.
type approver struct{ want *desired }

const (
	phaseApprover   = "approver"
	approverProgram = "pai-csr-approver"
	runApprover     = approverProgram
	setMachines     = "configmap " + machines.Name
	// clusterCA is the path of the authority with which API servers verify kubelets; kubeadm writes it.
	clusterCA = "/etc/kubernetes/pki/ca.crt"
)

//go:embed files/csr-approver.yaml.tmpl
var approverTemplate string

//go:embed scripts/approver.sh
var approverScript string

//go:embed scripts/serving.sh
var servingScript string

func (*approver) name() string         { return phaseApprover }
func (*approver) traits() traits       { return traits{upgrade: upgradeAfter, forOthers: true} }
func (*approver) applies(n *Node) bool { return n.ControlPlane }

// waits for the image on all masters: the program's pods may run on any of them.
func (p *approver) waits(_ *Node, pl *plan) []step {
	var out []step
	for _, m := range pl.world.controlPlane() {
		out = append(out, step{host: m.Hostname, phase: phaseImages})
	}
	return out
}

func (p *approver) detect(*Node) (string, error) {
	return approverScript + "d_approver\n", nil
}

func (p *approver) diff(n *Node, w *world) ([]Change, error) {
	if n != w.leader || w.founding() || !w.healthy(n) || p.want.selfSigned {
		return nil, nil
	}
	a := w.cluster(n)
	var out []Change
	if d := machines.Difference(p.want.addresses(), readMachines(a)); d != "" {
		out = append(out, Change{Action: "set", Target: setMachines, Detail: d})
	}
	_, sum, err := p.want.approverManifest()
	if err != nil {
		return nil, err
	}
	if a.Value("approver") != sum && w.concerns(n) {
		out = append(out, p.want.approverChange())
	}
	return out, nil
}

func (s *Spec) approverChange() Change {
	return Change{Action: "run", Target: runApprover, Detail: "it approves the certificates of kubelets' servers"}
}

func (p *approver) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	body, err := p.want.approve(cs)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(cs, func(c Change) bool { return c.Target == runApprover }) {
		body += "a_works\n"
	}
	_, err = r.script(ctx, n, phaseApprover, "apply", p.want.selfAPI(n)+approverScript+body)
	return err
}

func (*approver) verify(*Node) string { return "" } // apply checks it

// approve returns shell code that makes the changes in the cluster, the addresses first: requests are judged by them.
func (s *Spec) approve(cs []Change) (string, error) {
	var b strings.Builder
	for _, c := range cs {
		switch c.Target {
		case setMachines:
			list, err := s.machinesList()
			if err != nil {
				return "", err
			}
			b.WriteString(heredoc("a_machines", list))
		case runApprover:
			manifest, _, err := s.approverManifest()
			if err != nil {
				return "", err
			}
			b.WriteString(heredoc("a_approver", manifest))
		}
	}
	return b.String(), nil
}

// addresses returns the addresses of the layout's machines, by node.
func (s *Spec) addresses() map[string]string {
	out := map[string]string{}
	for _, n := range s.Nodes {
		out[n.Hostname] = machines.Value(n.HostIP)
	}
	return out
}

func (s *Spec) machinesList() ([]byte, error) {
	return yaml.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: machines.Name, Namespace: machines.Namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": "paictl"}},
		Data:       s.addresses(),
	})
}

func readMachines(a answer.Answer) map[string]string {
	out := map[string]string{}
	for _, row := range a.All("machine") {
		if len(row) == 2 {
			out[row[0]] = unquoted(row[1])
		}
	}
	return out
}

// approverManifest returns the manifest to apply, and the hash that identifies it.
func (s *Spec) approverManifest() (manifest []byte, sum string, err error) {
	image, err := s.image(approverProgram)
	if err != nil {
		return nil, "", err
	}
	return hashed(approverProgram, approverTemplate, map[string]string{
		"Image": s.imageRef(image), "APIPort": strconv.Itoa(s.Config.Kubernetes.Kubernetes.APIServerPort), "Replicas": strconv.Itoa(min(2, len(s.ControlPlane()))),
	})
}

// hashed renders a manifest that holds its own hash, and returns both.
func hashed(name, text string, values map[string]string) (manifest []byte, sum string, err error) {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return nil, "", err
	}
	for range 2 { // the second time with the hash of the first
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return nil, "", err
		}
		manifest = b.Bytes()
		if values["Hash"] == "" {
			values["Hash"] = hash(manifest)
		}
	}
	return manifest, values["Hash"], nil
}

// certificates decides, once the leader is known, whether kubelets sign their certificates themselves instead of getting them from the cluster, and
// whether API servers don't verify them. In a new cluster both are false. A run on all machines and phases changes an existing cluster, which stays
// unchanged until then. An upgrade doesn't change it.
func (w *world) certificates() (selfSigned, unverified bool) {
	_, there := w.cluster(w.leader).Row("approver")
	verifies := slices.ContainsFunc(w.members(), func(n *Node) bool { return w.of(n, phaseApprover).Value("verifies") == "yes" })
	moves := w.whole && !w.want.upgrading
	switch {
	case w.want.Config.Kubernetes.Kubernetes.Extra.Kubelet["serverTLSBootstrap"] == false: // the configuration asks for it
		return true, true
	case w.founding():
		return false, false
	case !w.healthy(w.leader): // this is all that is known of a silent API
		return !verifies, !verifies
	}
	// If API servers verify, the approver is missing by mistake or wasn't found in time: they keep verifying.
	selfSigned = !there && !verifies && !moves
	return selfSigned, !verifies && (selfSigned || !moves)
}

// beginsToVerify reports whether the API server of a master is about to start verifying kubelets.
func (w *world) beginsToVerify(n *Node) bool {
	return !w.want.unverified && w.member(n) && w.of(n, phaseApprover).Value("verifies") != "yes"
}

// warnUnverified names the running nodes whose kubelets can't be verified once the API server starts to verify.
func (r *run) warnUnverified(n *Node) {
	w := r.planned.world
	nodes, err := w.nodes()
	if err != nil || !w.beginsToVerify(n) {
		return
	}
	var without []string
	for _, m := range r.spec.Nodes {
		if node, known := nodes[m.Hostname]; known && isReady(node) && (r.isAside(m) || w.facts[m.Hostname] == nil) {
			without = append(without, m.Hostname)
		}
	}
	if len(without) > 0 {
		r.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phaseInit,
			Message: "kubectl logs and exec don't reach " + strings.Join(without, ", ") + " from now on: the API servers verify kubelets, and there the certificate could not be replaced",
			Hint:    "repair the failure there, and run paictl cluster up"})
	}
}

// kubeletPort is the port of all kubelets.
func (s *Spec) kubeletPort() int {
	switch port := s.Config.Kubernetes.Kubernetes.Extra.Kubelet["port"].(type) {
	case int:
		return port
	case int64:
		return int(port)
	case float64:
		return int(port)
	}
	return 10250
}

// serving returns shell code that waits for the certificate of a member's kubelet; "" if the kubelet signs it itself.
func (d *desired) serving(n *Node) string {
	if d.selfSigned {
		return ""
	}
	return fmt.Sprintf("node=%s\n%sv_serving %s %d\n", shell.Quote(n.Hostname), servingScript, shell.Quote(host(n.HostIP)), d.kubeletPort())
}
