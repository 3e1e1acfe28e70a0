package cluster

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/secret"
)

// join takes all machines but the first into the cluster: workers at once, further control
// plane machines one after the other, since each becomes an etcd member.
type join struct{ spec *Spec }

const phaseJoin = "join"

func (*join) name() string         { return phaseJoin }
func (*join) applies(n *Node) bool { return !n.First }

func (p *join) waits(n *Node, _ *plan) []step {
	out := []step{{host: p.spec.First().Hostname, phase: phaseInit, must: true}}
	if !n.ControlPlane {
		return out
	}
	var before *Node
	for _, c := range p.spec.ControlPlane() {
		if c == n {
			break
		}
		before = c
	}
	if before != nil && !before.First {
		out = append(out, step{host: before.Hostname, phase: phaseJoin})
	}
	return out
}

func (*join) detect(*Node) (string, error) { return "d_member\n", nil }

const runJoin = "kubeadm join"

func (p *join) diff(n *Node, w *world) ([]Change, error) {
	a := w.of(n, phaseJoin)
	first := w.of(p.spec.First(), phaseInit)
	nodes, err := w.nodes(p.spec)
	if err != nil {
		return nil, err
	}
	_, known := nodes[n.Hostname]
	why := ""
	switch {
	case first.value("member") != "yes":
		// All nodes of an earlier cluster went with its database.
		if a.value("member") == "yes" {
			why = "the cluster is made anew"
		}
		return []Change{{Action: "run", Target: runJoin, Detail: why}}, nil
	case a.value("member") != "yes":
	case a.value("ca") != first.value("ca"):
		why = "it belongs to an earlier cluster"
	case known || first.value("api") != "up": // of a silent API nothing can be said; init tells
		return nil, nil
	default:
		why = "the cluster does not know it any more"
	}
	var out []Change
	if _, left := a.row("left"); known || left {
		out = append(out, Change{Action: "delete", Target: "node " + n.Hostname, Detail: "what an earlier attempt has left"})
	}
	return append(out, Change{Action: "run", Target: runJoin, Detail: why}), nil
}

// nodes returns the cluster's nodes by name, as the API had them when it was asked. The answer
// is long in a large cluster, so it is read once.
func (w *world) nodes(s *Spec) (map[string]corev1.Node, error) {
	w.nodesOnce.Do(func() { w.nodesRead, w.nodesErr = w.readNodes(s) })
	return w.nodesRead, w.nodesErr
}

func (w *world) readNodes(s *Spec) (map[string]corev1.Node, error) {
	out := map[string]corev1.Node{}
	raw := decoded(w.of(s.First(), phaseInit).value("nodes"))
	if len(raw) == 0 {
		return out, nil
	}
	var list corev1.NodeList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read the cluster's nodes: %w", err)
	}
	for _, n := range list.Items {
		out[n.Name] = n
	}
	return out, nil
}

func (p *join) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	if cs[0].Target != runJoin {
		if err := p.forget(ctx, r, n); err != nil {
			return err
		}
	}
	t, err := r.joinTicket(ctx)
	if err != nil {
		return err
	}
	conf, err := p.spec.joinConfig(n, t)
	if err != nil {
		return err
	}
	body := kubeadmScript
	if n.ControlPlane {
		body += heredoc("p_file "+encryptionFile+" 600", []byte(t.encryption.Reveal()))
	}
	applied := ""
	if n.ControlPlane {
		if applied, err = p.spec.controlPlaneHash(n); err != nil {
			return err
		}
	}
	body += heredoc("k_join "+quote(p.spec.ignoredChecks())+" "+quote(applied), conf)
	_, err = r.script(ctx, n, phaseJoin, "apply", body)
	return err
}

// forget removes the node's object: kubeadm refuses a machine whose name belongs to a node
// that is Ready, and it stays so for a while after its kubelet has ended. The kubelet ends
// first, for one that is just starting would register the node again.
func (p *join) forget(ctx context.Context, r *run, n *Node) error {
	if _, err := r.script(ctx, n, phaseJoin, "clear", kubeadmScript+"k_clear\n"); err != nil {
		return err
	}
	_, err := r.script(ctx, r.spec.First(), phaseJoin, "forget", fmt.Sprintf("kubectl delete node %s --ignore-not-found >&2\n", quote(n.Hostname)))
	return err
}

func (p *join) verify(n *Node) string {
	if p.spec.Config.Kubernetes.Kubernetes.NetworkPlugin != flannelPlugin {
		return ""
	}
	return waitReady(n)
}

// ticket is what a machine needs to join: one for all machines of a run.
type ticket struct {
	token          secret.String
	caHash         string
	certificateKey secret.String // only where further control plane machines join
	encryption     secret.String // the key file for secrets at rest, likewise
}

// joinTicket asks the first machine for a ticket, once per run.
func (r *run) joinTicket(ctx context.Context) (*ticket, error) {
	r.joinMu.Lock()
	defer r.joinMu.Unlock()
	if r.ticket != nil {
		return r.ticket, nil
	}
	more := 0
	if len(r.spec.ControlPlane()) > 1 {
		more = 1
	}
	res, err := r.script(ctx, r.spec.First(), phaseJoin, "token", kubeadmScript+fmt.Sprintf("k_ticket %d\n", more))
	if err != nil {
		return nil, err
	}
	a := parseFacts(append([]byte("@@ ticket\n"), res.Stdout...))["ticket"]
	caHash, err := publicKeyHash(decoded(a.value("ca")))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of %s: %w", r.spec.First().Hostname, err)
	}
	t := &ticket{
		token: secret.String(a.value("token")), caHash: caHash,
		certificateKey: secret.String(a.value("certificate-key")),
		encryption:     secret.String(decoded(a.value("encryption"))),
	}
	if !t.token.IsSet() {
		return nil, fmt.Errorf("make a join token on %s: unexpected answer", r.spec.First().Hostname)
	}
	r.ticket = t
	return t, nil
}

// publicKeyHash is how a joining machine recognises the cluster: kubeadm's hash of the
// authority's public key (DER, SubjectPublicKeyInfo).
func publicKeyHash(ca []byte) (string, error) {
	block, _ := pem.Decode(ca)
	if block == nil {
		return "", errors.New("no PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	return "sha256:" + hash(cert.RawSubjectPublicKeyInfo), nil
}
