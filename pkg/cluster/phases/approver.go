package phases

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
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// approver makes the cluster sign the kubelets' serving certificates. A program on the masters approves a kubelet's request if the request matches
// the list of machines. The phase runs before changes to the kubelets' settings, so that no kubelet has to wait for the program. In a new cluster,
// the phase init installs the program when the API runs.
type approver struct{ want *engine.Desired }

// Names and paths of the approver.
const (
	ApproverProgram = "pai-csr-approver"
	runApprover     = ApproverProgram
	setMachines     = "configmap " + machines.Name
	// clusterCA is the path of the CA with which API servers verify kubelets. kubeadm writes this file.
	clusterCA = "/etc/kubernetes/pki/ca.crt"
)

//go:embed files/csr-approver.yaml.tmpl
var approverTemplate string

//go:embed scripts/approver.sh
var approverScript string

//go:embed scripts/serving.sh
var servingScript string

func (*approver) Name() string { return engine.PhaseApprover }
func (*approver) Traits() engine.Traits {
	return engine.Traits{Upgrade: engine.UpgradeAfter, ForOthers: true}
}
func (*approver) Applies(n *engine.Node) bool { return n.ControlPlane }

// Waits returns the steps that import the images on all masters, because the program's pods may run on any master.
func (p *approver) Waits(_ *engine.Node, pl *engine.Plan) []engine.Step {
	var out []engine.Step
	for _, m := range pl.World.ControlPlane() {
		out = append(out, engine.Step{Host: m.Hostname, Phase: PhaseImages})
	}
	return out
}

func (p *approver) Detect(*engine.Node) (string, error) {
	return approverScript + "d_approver\n", nil
}

func (p *approver) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	if n != w.Leader || w.Founding() || !w.Healthy(n) || p.want.SelfSigned {
		return nil, nil
	}
	a := w.Cluster(n)
	var out []engine.Change
	if d := machines.Difference(addresses(p.want.Spec), readMachines(a)); d != "" {
		out = append(out, engine.Change{Action: "set", Target: setMachines, Detail: d})
	}
	_, sum, err := ApproverManifest(p.want.Spec)
	if err != nil {
		return nil, err
	}
	if a.Value("approver") != sum && w.Concerns(n) {
		out = append(out, approverChange())
	}
	return out, nil
}

func approverChange() engine.Change {
	return engine.Change{Action: "run", Target: runApprover, Detail: "it approves the certificates of kubelets' servers"}
}

func (p *approver) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	body, err := approve(p.want.Spec, cs)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == runApprover }) {
		body += "a_works\n"
	}
	_, err = r.Script(ctx, n, engine.PhaseApprover, "apply", p.want.SelfAPI(n)+approverScript+body)
	return err
}

func (*approver) Verify(*engine.Node) string { return "" } // Apply checks the program

// approve returns shell code that makes the changes in the cluster. It sets the list of machines first, because the approver needs the list for its
// decisions.
func approve(s *engine.Spec, cs []engine.Change) (string, error) {
	var b strings.Builder
	for _, c := range cs {
		switch c.Target {
		case setMachines:
			list, err := MachinesList(s)
			if err != nil {
				return "", err
			}
			b.WriteString(engine.Heredoc("a_machines", list))
		case runApprover:
			manifest, _, err := ApproverManifest(s)
			if err != nil {
				return "", err
			}
			b.WriteString(engine.Heredoc("a_approver", manifest))
		}
	}
	return b.String(), nil
}

func addresses(s *engine.Spec) map[string]string {
	out := map[string]string{}
	for _, n := range s.Nodes {
		out[n.Hostname] = machines.Value(n.HostIP)
	}
	return out
}

// MachinesList returns the ConfigMap with the machines' addresses. The approver compares certificate requests with this ConfigMap.
func MachinesList(s *engine.Spec) ([]byte, error) {
	return yaml.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: machines.Name, Namespace: machines.Namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": "paictl"}},
		Data:       addresses(s),
	})
}

func readMachines(a answer.Answer) map[string]string {
	out := map[string]string{}
	for _, row := range a.All("machine") {
		if len(row) == 2 {
			out[row[0]] = engine.Unquoted(row[1])
		}
	}
	return out
}

// ApproverManifest returns the manifest to apply and a hash of the manifest.
func ApproverManifest(s *engine.Spec) (manifest []byte, sum string, err error) {
	image, err := s.Image(ApproverProgram)
	if err != nil {
		return nil, "", err
	}
	return hashed(ApproverProgram, approverTemplate, map[string]string{
		"Image": ImageRef(s, image), "APIPort": strconv.Itoa(s.Config.Kubernetes.Kubernetes.APIServerPort), "Replicas": strconv.Itoa(min(2, len(s.ControlPlane()))),
	})
}

// hashed renders a manifest that contains a hash of its other content. It returns the manifest and the hash.
func hashed(name, text string, values map[string]string) (manifest []byte, sum string, err error) {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return nil, "", err
	}
	for range 2 { // the second pass inserts the hash of the first
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return nil, "", err
		}
		manifest = b.Bytes()
		if values["Hash"] == "" {
			values["Hash"] = engine.Hash(manifest)
		}
	}
	return manifest, values["Hash"], nil
}

func beginsToVerify(w *engine.World, n *engine.Node) bool {
	return !w.Want.Unverified && w.Member(n) && w.Of(n, engine.PhaseApprover).Value("verifies") != "yes"
}

// warnUnverified warns about running nodes whose kubelets can't be verified. It runs before a master's API server begins to verify kubelets.
func warnUnverified(r *engine.Run, n *engine.Node) {
	w := r.Planned.World
	nodes, err := w.Nodes()
	if err != nil || !beginsToVerify(w, n) {
		return
	}
	var without []string
	for _, m := range r.Spec.Nodes {
		if node, known := nodes[m.Hostname]; known && engine.IsReady(node) && (r.IsAside(m) || w.Facts[m.Hostname] == nil) {
			without = append(without, m.Hostname)
		}
	}
	if len(without) > 0 {
		r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: engine.PhaseInit,
			Message: "kubectl logs and exec don't reach " + strings.Join(without, ", ") + " from now on: the API servers verify kubelets, and there the certificate could not be replaced",
			Hint:    "repair the failure there, and run paictl cluster up"})
	}
}

func kubeletPort(s *engine.Spec) int {
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

// serving returns shell code that waits until a member's kubelet has its serving certificate. It returns "" if kubelets sign their own certificates.
func serving(d *engine.Desired, n *engine.Node) string {
	if d.SelfSigned {
		return ""
	}
	return fmt.Sprintf("node=%s\n%sv_serving %s %d\n", shell.Quote(n.Hostname), servingScript, shell.Quote(engine.Host(n.HostIP)), kubeletPort(d.Spec))
}
