package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// join adds machines to the cluster of the leader: workers at once, control plane machines one
// after the other, since each becomes an etcd member.
type join struct{ want *desired }

const phaseJoin = "join"

func (*join) name() string       { return phaseJoin }
func (*join) traits() traits     { return traits{rejoins: true} }
func (*join) applies(*Node) bool { return true }

// waits ensures that etcd's members change one at a time, and not while one of them restarts.
func (p *join) waits(n *Node, pl *plan) []step {
	out := []step{{host: pl.world.leader.Hostname, phase: phaseInit, must: true}}
	if isMove(pl.of(n, phaseJoin)) {
		for _, m := range pl.world.controlPlane() {
			if reconfigures(pl, m) { // its certificate gets the new name
				out = append(out, step{host: m.Hostname, phase: phaseInit})
			}
		}
		return append(out, pl.rollout(n, phaseJoin, kubeletName)...)
	}
	if !n.ControlPlane {
		return out
	}
	passed := false
	for _, m := range pl.world.controlPlane()[1:] {
		passed = passed || m == n
		if !passed {
			out = append(out, step{host: m.Hostname, phase: phaseJoin})
		}
		if m != n && reconfigures(pl, m) {
			out = append(out, step{host: m.Hostname, phase: phaseInit})
		}
	}
	return out
}

func (p *join) detect(*Node) (string, error) {
	return fmt.Sprintf("ETCD_DIR=%s\nd_member\n", shell.Quote(strings.TrimSuffix(p.want.etcdData(), "/"))), nil
}

const (
	runJoin       = "kubeadm join"
	unknownNode   = "the cluster no longer has it"
	unknownMember = "etcd no longer has it"
)

func (p *join) diff(n *Node, w *world) ([]Change, error) {
	if n == w.leader && w.founding() {
		return nil, nil
	}
	if n == w.leader {
		return p.want.moves(n, w), nil
	}
	if w.founding() {
		return []Change{{Action: "run", Target: runJoin}}, nil
	}
	a := w.of(n, phaseJoin)
	nodes, err := w.nodes()
	if err != nil {
		return nil, err
	}
	_, known := nodes[n.Hostname]
	why := ""
	switch {
	case !w.member(n):
	case a.Value("ca") != w.of(w.leader, phaseJoin).Value("ca"):
		why = "it belongs to an earlier cluster"
	case !w.healthy(w.leader): // the state of a silent API is unknown; init reports it
		return nil, nil
	case !known:
		why = unknownNode
	case w.expelled(n):
		why = unknownMember
	default:
		return p.want.moves(n, w), nil
	}
	var out []Change
	if _, left := a.Row("left"); known || left {
		out = append(out, Change{Action: "delete", Target: "node " + n.Hostname, Detail: "remains of an earlier attempt"})
	}
	return append(out, Change{Action: "run", Target: runJoin, Detail: why}), nil
}

// nodes returns the cluster's nodes by name, according to the leader's API server at the time of
// the survey. The answer is long in a large cluster, so it is parsed once.
func (w *world) nodes() (map[string]corev1.Node, error) {
	w.nodesOnce.Do(func() { w.nodesRead, w.nodesErr = readNodes(w.of(w.leader, phaseInit)) })
	return w.nodesRead, w.nodesErr
}

func (p *join) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	if isMove(cs) {
		_, err := r.script(ctx, n, phaseJoin, "move", p.move(n))
		return err
	}
	for _, c := range cs {
		var err error
		switch c.Detail {
		case unknownNode:
			err = p.isUnknown(ctx, r, n)
		case unknownMember:
			err = r.isExpelled(ctx, n)
		}
		if err != nil {
			return err
		}
	}
	if err := p.forget(ctx, r, n, cs[0].Target != runJoin); err != nil {
		return err
	}
	t, err := r.joinTicket(ctx)
	if err != nil {
		return err
	}
	if t.barred[n.Hostname] {
		if _, err := r.script(ctx, r.leader, phaseJoin, "admit", p.want.selfAPI(r.leader)+removeScript+fmt.Sprintf("NODE=%s\nr_admit\n", shell.Quote(n.Hostname))); err != nil {
			return err
		}
	}
	conf, err := p.want.joinConfig(n, t)
	if err != nil {
		return err
	}
	body := kubeadmScript
	if n.ControlPlane {
		body += heredoc("p_file "+encryptionFile+" 600", []byte(t.encryption.Reveal()))
	}
	applied := ""
	if n.ControlPlane {
		if applied, err = p.want.controlPlaneHash(n); err != nil {
			return err
		}
	}
	body += "rm -rf \"$S/restore\"\n" + p.want.clear() + heredoc("k_join "+shell.Quote(p.want.ignoredChecks())+" "+shell.Quote(applied), conf)
	_, err = r.script(ctx, n, phaseJoin, "apply", body)
	return err
}

// isUnknown asks for the node by its name, before a machine that runs as a member is reset because it is not in a list.
func (p *join) isUnknown(ctx context.Context, r *run, n *Node) error {
	_, err := r.read(ctx, r.leader, phaseJoin, "look", p.want.selfAPI(r.leader)+fmt.Sprintf(`
said=$(self get node %s --request-timeout=30s -o name 2>&1) && { echo "the cluster knows the node after all: nothing was done on its machine -> run the same command again" >&2; exit 1; }
case $said in *NotFound*) ;; *) printf '%%s\n' "$said" >&2; exit 1 ;; esac
`, shell.Quote(n.Hostname)))
	return err
}

// isExpelled asks etcd again, before a machine that runs as a member is reset because it isn't in etcd's list.
func (r *run) isExpelled(ctx context.Context, n *Node) error {
	v, err := r.lookAtEtcd(ctx, r.leader)
	if err != nil {
		return err
	}
	if v == nil || !v.quorum || v.has(n) {
		return hint.Errorf("run the same command again", "etcd on %s no longer confirms that %s is not a member: nothing was done on the machine", r.leader.Hostname, n.Hostname)
	}
	return nil
}

// forget removes the cluster's remains of the machine. One is the node's object: kubeadm refuses a
// machine whose name belongs to a Ready node, and the node stays Ready for a while after its
// kubelet ended. The kubelet ends first, since a starting kubelet would register the node again.
// The other is etcd's member, whose data went with the machine's disk: a new member under its
// identity would break the others. The member goes first: if etcd can't do without it, etcd refuses
// before anything on the machine is lost.
func (p *join) forget(ctx context.Context, r *run, n *Node, node bool) error {
	if !node && !n.ControlPlane {
		return nil
	}
	body := p.want.selfAPI(r.leader) + removeScript + fmt.Sprintf("NODE=%s ADDRESS=%s LEADER=%s\n", shell.Quote(n.Hostname), shell.Quote(n.HostIP), shell.Quote(r.leader.Hostname))
	if n.ControlPlane {
		if _, err := r.script(ctx, r.leader, phaseJoin, "member", body+"r_member >&2\n"); err != nil {
			return err
		}
	}
	if node {
		if _, err := r.script(ctx, n, phaseJoin, "clear", kubeadmScript+p.want.clear()); err != nil {
			return err
		}
	}
	if n.ControlPlane {
		body += "r_mirrors\n"
	}
	_, err := r.script(ctx, r.leader, phaseJoin, "forget", body+"r_delete\n")
	return err
}

func (p *join) verify(n *Node) string {
	if p.want.Config.Kubernetes.Kubernetes.NetworkPlugin != flannelPlugin {
		return p.want.serving(n)
	}
	return waitReady(n) + p.want.serving(n)
}

// ticket holds the values that a machine needs to join. Machines share one until half of its life is over.
type ticket struct {
	made           time.Time
	issuer         string // the API server of the machine that made it
	token          secret.String
	caHash         string
	barred         map[string]bool // machines that are kept out, since they were removed while they were off
	certificateKey secret.String   // only set if further control plane machines join
	encryption     secret.String   // the key file for secrets at rest, likewise
}

// ticketLife is how long machines get the same ticket: half of its token's hour, so that a machine
// has the other half to use it.
const ticketLife = 30 * time.Minute

// joinTicket asks the leader for a ticket, and for a new one when the present one grows old.
func (r *run) joinTicket(ctx context.Context) (*ticket, error) {
	r.joinMu.Lock()
	defer r.joinMu.Unlock()
	now := r.opts.Clock()
	if r.ticket != nil && now.Sub(r.ticket.made) < ticketLife {
		return r.ticket, nil
	}
	more := 0
	if len(r.spec.ControlPlane()) > 1 {
		more = 1
	}
	res, err := r.script(ctx, r.leader, phaseJoin, "token", r.spec.selfAPI(r.leader)+kubeadmScript+fmt.Sprintf("k_ticket %d\n", more))
	if err != nil {
		return nil, err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return nil, err
	}
	caHash, err := publicKeyHash(decoded(a.Value("ca")))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of %s: %w", r.leader.Hostname, err)
	}
	t := &ticket{
		made: now, issuer: r.spec.ownEndpoint(r.leader),
		token: secret.String(a.Value("token")), caHash: caHash, barred: map[string]bool{},
		certificateKey: secret.String(a.Value("certificate-key")),
		encryption:     secret.String(decoded(a.Value("encryption"))),
	}
	for _, row := range a.All("barred") {
		t.barred[strings.Join(row, "")] = true
	}
	if !t.token.IsSet() {
		return nil, fmt.Errorf("make a join token on %s: unexpected answer", r.leader.Hostname)
	}
	r.ticket = t
	return t, nil
}

// publicKeyHash returns the hash by which a joining machine recognises the cluster: kubeadm's hash
// of the authority's public key (DER, SubjectPublicKeyInfo).
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
