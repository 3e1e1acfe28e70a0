package phases

import (
	"context"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// join adds machines to the leader's cluster. All workers join at the same time. Control plane machines join one after the other, because each
// becomes an etcd member.
type join struct{ want *engine.Desired }

func (*join) Name() string              { return engine.PhaseJoin }
func (*join) Traits() engine.Traits     { return engine.Traits{Rejoins: true} }
func (*join) Applies(*engine.Node) bool { return true }

// Waits returns steps that ensure that etcd members join one at a time, and that no member joins while another member restarts.
func (p *join) Waits(n *engine.Node, pl *engine.Plan) []engine.Step {
	out := []engine.Step{{Host: pl.World.Leader.Hostname, Phase: engine.PhaseInit, Must: true}}
	if isMove(pl.Of(n, engine.PhaseJoin)) {
		for _, m := range pl.World.ControlPlane() {
			if reconfigures(pl, m) { // the master's certificate gets the new name
				out = append(out, engine.Step{Host: m.Hostname, Phase: engine.PhaseInit})
			}
		}
		return append(out, rollout(pl, n, engine.PhaseJoin, KubeletName)...)
	}
	if !n.ControlPlane {
		return out
	}
	passed := false
	for _, m := range pl.World.ControlPlane()[1:] {
		passed = passed || m == n
		if !passed {
			out = append(out, engine.Step{Host: m.Hostname, Phase: engine.PhaseJoin})
		}
		if m != n && reconfigures(pl, m) {
			out = append(out, engine.Step{Host: m.Hostname, Phase: engine.PhaseInit})
		}
	}
	return out
}

func (p *join) Detect(*engine.Node) (string, error) {
	return fmt.Sprintf("ETCD_DIR=%s\nd_member\n", shell.Quote(strings.TrimSuffix(EtcdData(p.want.Spec), "/"))), nil
}

// The target of the phase's change, and the reasons why a machine has to join again.
const (
	RunJoin       = "kubeadm join"
	unknownNode   = "the cluster no longer has it"
	UnknownMember = "etcd no longer has it"
)

func (p *join) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	if n == w.Leader && w.Founding() {
		return nil, nil
	}
	if n == w.Leader {
		return moves(p.want, n, w), nil
	}
	if w.Founding() {
		return []engine.Change{{Action: "run", Target: RunJoin}}, nil
	}
	a := w.Of(n, engine.PhaseJoin)
	nodes, err := w.Nodes()
	if err != nil {
		return nil, err
	}
	_, known := nodes[n.Hostname]
	why := ""
	switch {
	case !w.Member(n):
	case a.Value("ca") != w.Of(w.Leader, engine.PhaseJoin).Value("ca"):
		why = "it belongs to an earlier cluster"
	case !w.Healthy(w.Leader): // without an answer of the API the state is unknown; the phase init reports it
		return nil, nil
	case !known:
		why = unknownNode
	case w.Expelled(n):
		why = UnknownMember
	default:
		return moves(p.want, n, w), nil
	}
	var out []engine.Change
	if _, left := a.Row("left"); known || left {
		out = append(out, engine.Change{Action: "delete", Target: "node " + n.Hostname, Detail: "remains of an earlier attempt"})
	}
	return append(out, engine.Change{Action: "run", Target: RunJoin, Detail: why}), nil
}

func (p *join) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	if isMove(cs) {
		_, err := r.Script(ctx, n, engine.PhaseJoin, "move", p.move(n))
		return err
	}
	for _, c := range cs {
		var err error
		switch c.Detail {
		case unknownNode:
			err = p.IsUnknown(ctx, r, n)
		case UnknownMember:
			err = IsExpelled(ctx, r, n)
		}
		if err != nil {
			return err
		}
	}
	if err := p.forget(ctx, r, n, cs[0].Target != RunJoin); err != nil {
		return err
	}
	t, err := joinTicket(ctx, r)
	if err != nil {
		return err
	}
	if t.Barred[n.Hostname] {
		if _, err := r.Script(ctx, r.Leader, engine.PhaseJoin, "admit", p.want.SelfAPI(r.Leader)+RemoveScript+fmt.Sprintf("NODE=%s\nr_admit\n", shell.Quote(n.Hostname))); err != nil {
			return err
		}
	}
	conf, err := JoinConfig(p.want, n, t)
	if err != nil {
		return err
	}
	body := KubeadmScript
	if n.ControlPlane {
		body += engine.Heredoc("p_file "+EncryptionFile+" 600", []byte(t.Encryption.Reveal()))
	}
	applied := ""
	if n.ControlPlane {
		if applied, err = ControlPlaneHash(p.want, n); err != nil {
			return err
		}
	}
	body += "rm -rf \"$S/restore\"\n" + Clear(p.want.Spec) + engine.Heredoc("k_join "+shell.Quote(IgnoredChecks(p.want.Spec))+" "+shell.Quote(applied), conf)
	for try := 1; ; try++ {
		_, err = r.Script(ctx, n, engine.PhaseJoin, "apply", body)
		if !slowAPI(err) || try == joinTries {
			return err
		}
		r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: engine.PhaseJoin,
			Message: "the API server didn't answer kubeadm within its 10 s, as when another master joins; kubeadm join is run again"})
	}
}

// joinTries is how often a machine tries to join if the API server responds too slowly for kubeadm.
const joinTries = 3

// slowAPI reports whether kubeadm's first request to the API server timed out. Another attempt is then safe. kubeadm hasn't changed the cluster
// yet, and the phase's script removes the files that kubeadm has written.
func slowAPI(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cannot get Node") && strings.Contains(err.Error(), "context deadline exceeded")
}

// IsUnknown returns an error if the API has an object for the node. paictl calls it before it resets a running member that is missing in the list of
// nodes.
func (p *join) IsUnknown(ctx context.Context, r *engine.Run, n *engine.Node) error {
	_, err := r.Read(ctx, r.Leader, engine.PhaseJoin, "look", p.want.SelfAPI(r.Leader)+fmt.Sprintf(`
said=$(self get node %s --request-timeout=30s -o name 2>&1) && { echo "the cluster knows the node after all: nothing was done on its machine -> run the same command again" >&2; exit 1; }
case $said in *NotFound*) ;; *) printf '%%s\n' "$said" >&2; exit 1 ;; esac
`, shell.Quote(n.Hostname)))
	return err
}

// IsExpelled returns an error unless etcd confirms that the machine isn't a member. paictl calls it before it resets a running member that is
// missing in etcd's list.
func IsExpelled(ctx context.Context, r *engine.Run, n *engine.Node) error {
	v, err := r.ReadEtcd(ctx, r.Leader)
	if err != nil {
		return err
	}
	if v == nil || !v.Quorum || v.Has(n) {
		return hint.Errorf("run the same command again", "etcd on %s no longer confirms that %s is not a member: nothing was done on the machine", r.Leader.Hostname, n.Hostname)
	}
	return nil
}

// forget removes a machine's node object and etcd member from the cluster. kubeadm rejects a machine if a Ready node has its name, and a node stays
// Ready for a while after its kubelet has ended. The kubelet must end first, because a starting kubelet would register the node again. The old etcd
// member has lost its data with the machine's disk. A new member with the same identity would damage the other members. forget removes the member
// first. If etcd rejects the removal because it needs the member, the machine is still unchanged.
func (p *join) forget(ctx context.Context, r *engine.Run, n *engine.Node, node bool) error {
	if !node && !n.ControlPlane {
		return nil
	}
	body := p.want.SelfAPI(r.Leader) + RemoveScript + fmt.Sprintf("NODE=%s ADDRESS=%s LEADER=%s\n", shell.Quote(n.Hostname), shell.Quote(n.HostIP), shell.Quote(r.Leader.Hostname))
	if n.ControlPlane {
		if _, err := r.Script(ctx, r.Leader, engine.PhaseJoin, "member", body+"r_member >&2\n"); err != nil {
			return err
		}
	}
	if node {
		if _, err := r.Script(ctx, n, engine.PhaseJoin, "clear", KubeadmScript+Clear(p.want.Spec)); err != nil {
			return err
		}
	}
	if n.ControlPlane {
		body += "r_mirrors\n"
	}
	_, err := r.Script(ctx, r.Leader, engine.PhaseJoin, "forget", body+"r_delete\n")
	return err
}

func (p *join) Verify(n *engine.Node) string {
	if p.want.Config.Kubernetes.Kubernetes.NetworkPlugin != FlannelPlugin {
		return serving(p.want, n)
	}
	return waitReady(n) + serving(p.want, n)
}

// TicketLife is how long machines get the same ticket. The token is valid for an hour, so a machine has at least half an hour to use the ticket.
const TicketLife = 30 * time.Minute

// joinTicket returns the current ticket. If the current ticket is too old, it gets a new ticket from the leader.
func joinTicket(ctx context.Context, r *engine.Run) (*engine.Ticket, error) {
	r.JoinMu.Lock()
	defer r.JoinMu.Unlock()
	now := r.Opts.Clock()
	if r.Ticket != nil && now.Sub(r.Ticket.Made) < TicketLife {
		return r.Ticket, nil
	}
	more := 0
	if len(r.Spec.ControlPlane()) > 1 {
		more = 1
	}
	a, err := engine.Answer(r.Script(ctx, r.Leader, engine.PhaseJoin, "token", r.Spec.SelfAPI(r.Leader)+KubeadmScript+fmt.Sprintf("k_ticket %d\n", more)))
	if err != nil {
		return nil, err
	}
	caHash, err := PublicKeyHash(engine.Decoded(a.Value("ca")))
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of %s: %w", r.Leader.Hostname, err)
	}
	t := &engine.Ticket{
		Made: now, Issuer: r.Spec.OwnEndpoint(r.Leader),
		Token: secret.String(a.Value("token")), CaHash: caHash, Barred: map[string]bool{},
		CertificateKey: secret.String(a.Value("certificate-key")),
		Encryption:     secret.String(engine.Decoded(a.Value("encryption"))),
	}
	for _, row := range a.All("barred") {
		t.Barred[strings.Join(row, "")] = true
	}
	if !t.Token.IsSet() {
		return nil, fmt.Errorf("make a join token on %s: unexpected answer", r.Leader.Hostname)
	}
	r.Ticket = t
	return t, nil
}

// PublicKeyHash returns the hash by which a joining machine recognizes the cluster. Like kubeadm, it hashes the public key of the CA (DER,
// SubjectPublicKeyInfo).
func PublicKeyHash(ca []byte) (string, error) {
	block, _ := pem.Decode(ca)
	if block == nil {
		return "", errors.New("no PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	return "sha256:" + engine.Hash(cert.RawSubjectPublicKeyInfo), nil
}

// RemoveScript defines the shell functions that remove a machine from the cluster.
//
//go:embed scripts/remove.sh
var RemoveScript string
