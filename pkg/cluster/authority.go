package cluster

import (
	"bytes"
	"context"
	"crypto/x509"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

const (
	phaseTrust   = "trust"
	phaseSign    = "sign"
	phaseForget  = "forget"
	pkiDir       = "/etc/kubernetes/pki"
	rotationDir  = pkiDir + "/paictl-rotation"
	signerFile   = pkiDir + "/ca-signing.crt"
	kubernetesCA = "ca"
	restartLimit = 30 * time.Minute
	// readyLimit limits the wait for a component's restart. It is the limit of the script that restarts the component, plus a margin.
	readyLimit = 7 * time.Minute
	readyPause = 5 * time.Second
)

//go:embed scripts/authority.sh
var authorityScript string

// authorityNames holds the names of kubeadm's CAs. Each name is also the path of the CA's files below pkiDir.
var authorityNames = []string{kubernetesCA, "etcd/ca", "front-proxy-ca"}

func authorityCert(name string) string { return path.Join(pkiDir, name+".crt") }
func authorityKey(name string) string  { return path.Join(pkiDir, name+".key") }

type caStep int

const (
	caOld    caStep = iota // the machine doesn't know the new CA
	caTrust                // machines at this step trust both CAs
	caSign                 // they also have certificates of the new CA
	caForget               // they trust only the new CA
)

func (s caStep) phase() string { return []string{"", phaseTrust, phaseSign, phaseForget}[s] }

// RotateAuthorities replaces the CAs of Kubernetes, of etcd and of the API's extensions. In the first step, all machines trust the new CAs in
// addition to the old CAs. In the second step, the machines get certificates of the new CAs for their existing keys. In the last step, they stop
// trusting the old CAs. RotateAuthorities changes masters one after the other. The API servers also send a certificate of the new CA that the old
// CA has signed. Programs that trust only the old CA therefore work until they restart. RotateAuthorities reads the progress of an earlier run from
// the machines. With Options.DryRun it only returns the changes that it would make.
func RotateAuthorities(ctx context.Context, s *engine.Spec, o engine.Options, how AuthorityOptions) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	k := &caRotation{Run: r, how: how, machines: map[*engine.Node]*caMachine{}}
	r.Started = o.Clock()
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster certs rotate-ca", Hosts: hostnames(s.Nodes), Phases: []string{phaseTrust, phaseSign, phaseForget}})
	if err := connect(ctx, r, s.Nodes); err != nil {
		return nil, err
	}
	for _, n := range s.ControlPlane() {
		if r.IsAside(n) {
			return nil, hint.Errorf("start the machine, or remove it from the cluster: paictl node remove "+n.Hostname, "the master %s doesn't answer, and would come back with the old authority", n.Hostname)
		}
	}
	ctx, unlock, err := r.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := k.rotate(ctx); err != nil {
		return nil, err
	}
	if !o.DryRun {
		for _, n := range r.Working(s.Nodes) {
			r.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
		}
	}
	return k.planned, r.Summary("cluster certs rotate-ca", s.Nodes, k.planned)
}

// AuthorityOptions determine how RotateAuthorities treats machines that it can't reach.
type AuthorityOptions struct {
	// Leave makes the rotation skip machines that can't be reached.
	Leave bool
	// CatchUp gives the current CAs to machines that an earlier rotation has skipped. It creates no new CAs.
	CatchUp bool
	// Wait limits how long to wait for an API server that isn't ready. 0 means the limit for a restart on the machine.
	Wait time.Duration
}

type caRotation struct {
	*engine.Run
	how      AuthorityOptions
	masters  []*engine.Node // members, by address
	workers  []*engine.Node
	machines map[*engine.Node]*caMachine
	old      map[string]*x509.Certificate // nil if machines only catch up
	next     map[string]*pki.Authority
	keys     map[string]secret.String // the keys of the new CAs, as PEM
	cross    *x509.Certificate
	planned  []engine.Change
}

func (k *caRotation) rotate(ctx context.Context) error {
	if err := k.read(ctx); err != nil {
		return err
	}
	if len(k.masters) == 0 {
		return hint.Errorf("make it: paictl cluster up", "there is no cluster yet")
	}
	if err := k.refuse(ctx); err != nil {
		return err
	}
	step, err := k.begin(ctx)
	if err != nil {
		return err
	}
	if k.Opts.DryRun {
		k.plan(step)
		return nil
	}
	if k.old != nil {
		if err := k.store(ctx); err != nil {
			return err
		}
	}
	for ; step <= caForget; step++ {
		if step == caForget {
			if err := k.refuseLeft(ctx); err != nil {
				return err
			}
		}
		if err := k.bring(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step.phase(), err)
		}
	}
	return k.end(ctx)
}

func (k *caRotation) read(ctx context.Context) error {
	errs := k.Each(ctx, k.Working(k.Spec.Nodes), k.look)
	for n, err := range errs {
		if n.ControlPlane || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", n.Hostname, err)
		}
	}
	if err := k.SetAsideAll(ctx, "read", errs); err != nil {
		return err
	}
	for _, n := range k.Spec.Nodes {
		switch {
		case k.machine(n) == nil || k.IsAside(n):
		case n.ControlPlane:
			k.masters = append(k.masters, n)
		default:
			k.workers = append(k.workers, n)
		}
	}
	slices.SortFunc(k.masters, engine.ByAddress)
	return nil
}

// refuse returns an error if the rotation would skip a part of the control plane. It also returns an error if new certificates would not be valid yet
// on some machine.
func (k *caRotation) refuse(ctx context.Context) error {
	for _, n := range append(slices.Clone(k.masters), k.workers...) {
		if behind := k.Opts.Clock().Sub(k.machine(n).clock); behind > skew {
			return hint.Errorf("set the clocks", "the clock of %s is %s behind this machine's: new certificates wouldn't be valid there yet", n.Hostname, behind.Round(time.Minute))
		}
	}
	a, err := k.nodes(ctx)
	if err != nil {
		return err
	}
	for _, row := range a.All("master") {
		if len(row) > 0 && !slices.ContainsFunc(k.masters, func(n *engine.Node) bool { return n.Hostname == row[0] }) {
			return hint.Errorf("list it in layout.yaml, or remove it from the cluster: kubectl delete node "+row[0],
				"the cluster has a master that layout.yaml doesn't: %s; its etcd would be left out", row[0])
		}
	}
	return nil
}

func (k *caRotation) nodes(ctx context.Context) (answer.Answer, error) {
	leader := k.masters[0]
	if err := k.awaitAPI(ctx, leader); err != nil {
		return answer.Answer{}, err
	}
	return engine.Answer(k.Read(ctx, leader, "authority", "nodes", k.Spec.SelfAPI(leader)+authorityScript+"a_nodes\n"))
}

// begin loads the new CAs of an interrupted run or creates new CAs. It returns the next step of the rotation.
func (k *caRotation) begin(ctx context.Context) (caStep, error) {
	var from *engine.Node
	for _, n := range k.masters {
		if k.whole(k.machine(n)) {
			from = n
			break
		}
	}
	if from != nil {
		if k.how.CatchUp {
			return 0, hint.Errorf("run the command without --catch-up to continue it", "a rotation of the cluster's authorities was interrupted")
		}
		return k.resume(ctx, from)
	}
	leader := k.masters[0]
	have := k.machine(leader)
	for _, n := range k.masters {
		for _, name := range authorityNames {
			if c := k.machine(n).certs[authorityCert(name)]; len(c) != 1 || !c[0].Equal(have.certs[authorityCert(name)][0]) {
				return 0, hint.Errorf("compare them: paictl cluster certs list; restore "+pkiDir+" from a backup", "%s of %s is not that of %s alone, and no rotation is under way", authorityCert(name), n.Hostname, leader.Hostname)
			}
		}
	}
	if k.Opts.DryRun {
		if k.how.CatchUp {
			return caForget, nil
		}
		return caTrust, nil
	}
	keys, err := k.secrets(ctx, leader)
	if err != nil {
		return 0, err
	}
	current := map[string]*pki.Authority{}
	for _, name := range authorityNames {
		if current[name], err = pki.Load(pki.Encode(have.certs[authorityCert(name)]...), []byte(keys[authorityKey(name)].Reveal())); err != nil {
			return 0, hint.Errorf("bring the authority's key to the masters; one that is kept elsewhere is rotated there", "the authority %s on %s: %w", name, leader.Hostname, err)
		}
	}
	now := k.Opts.Clock()
	k.next, k.keys = map[string]*pki.Authority{}, map[string]secret.String{}
	if k.how.CatchUp {
		k.next = current
		return caForget, nil
	}
	k.old = map[string]*x509.Certificate{}
	for name, a := range current {
		k.old[name] = a.Cert
		if k.next[name], err = a.Successor(now); err != nil {
			return 0, err
		}
		pem, err := k.next[name].EncodeKey()
		if err != nil {
			return 0, err
		}
		k.keys[name] = secret.String(pem)
	}
	k.cross, err = current[kubernetesCA].Cross(k.next[kubernetesCA], now)
	return caTrust, err
}

func stored(name, kind string) string { return path.Join(rotationDir, name+kind) }

// whole reports whether a master has all files that an interrupted rotation needs to continue.
func (*caRotation) whole(m *caMachine) bool {
	ok := len(m.certs[stored("cross", ".crt")]) == 1
	for _, name := range authorityNames {
		ok = ok && len(m.certs[stored(name, ".crt")]) == 1 && len(m.certs[stored(name, ".old.crt")]) == 1 && m.keys[stored(name, ".key")] != ""
	}
	return ok
}

// resume loads the CAs that an interrupted run has created. It returns the next step of the rotation.
func (k *caRotation) resume(ctx context.Context, from *engine.Node) (caStep, error) {
	keys, err := k.secrets(ctx, from)
	if err != nil {
		return 0, err
	}
	m := k.machine(from)
	k.old, k.next, k.keys, k.cross = map[string]*x509.Certificate{}, map[string]*pki.Authority{}, map[string]secret.String{}, m.certs[stored("cross", ".crt")][0]
	for _, name := range authorityNames {
		k.old[name], k.keys[name] = m.certs[stored(name, ".old.crt")][0], keys[stored(name, ".key")]
		if k.next[name], err = pki.Load(pki.Encode(m.certs[stored(name, ".crt")]...), []byte(k.keys[name].Reveal())); err != nil {
			return 0, fmt.Errorf("the new authority %s on %s: %w", name, from.Hostname, err)
		}
	}
	step := caTrust
	for _, n := range k.masters {
		have := pki.Encode(k.machine(n).certs[authorityCert(kubernetesCA)]...)
		switch {
		case bytes.Equal(have, k.bundle(kubernetesCA, caOld)), bytes.Equal(have, k.bundle(kubernetesCA, caTrust)):
		case bytes.Equal(have, k.bundle(kubernetesCA, caSign)):
			step = max(step, caSign)
		case bytes.Equal(have, k.bundle(kubernetesCA, caForget)):
			step = caForget
		default:
			return 0, hint.Errorf("restore "+pkiDir+" of the masters from a backup", "%s of %s is neither the old authority nor the new one of the rotation that is under way", authorityCert(kubernetesCA), n.Hostname)
		}
	}
	return step, nil
}

// bundle returns the PEM certificates that the file of a CA contains at the given step.
func (k *caRotation) bundle(name string, step caStep) []byte {
	next := k.next[name].Cert
	switch {
	case k.old == nil || step == caForget:
		return pki.Encode(next)
	case step == caSign:
		return pki.Encode(next, k.old[name])
	case step == caTrust:
		return pki.Encode(k.old[name], next)
	}
	return pki.Encode(k.old[name])
}

func (k *caRotation) secrets(ctx context.Context, n *engine.Node) (map[string]secret.String, error) {
	a, err := engine.Answer(k.Read(ctx, n, "authority", "keys", authorityScript+"a_keys\n"))
	if err != nil {
		return nil, err
	}
	out := map[string]secret.String{}
	for _, row := range a.All("secret") {
		if len(row) == 2 {
			out[row[0]] = secret.String(engine.Decoded(row[1]))
		}
	}
	return out, nil
}

// store writes the new CAs and their keys to all masters. It must run before any machine trusts the new CAs.
func (k *caRotation) store(ctx context.Context) error {
	for n, err := range k.Each(ctx, k.masters, func(ctx context.Context, n *engine.Node) error {
		if k.whole(k.machine(n)) {
			return nil
		}
		var b strings.Builder
		for _, name := range authorityNames {
			b.WriteString(engine.Heredoc("a_file "+stored(name, ".key")+" 600 -", []byte(k.keys[name].Reveal())))
			b.WriteString(engine.Heredoc("a_file "+stored(name, ".old.crt")+" 600 -", pki.Encode(k.old[name])))
			b.WriteString(engine.Heredoc("a_file "+stored(name, ".crt")+" 600 -", pki.Encode(k.next[name].Cert)))
		}
		b.WriteString(engine.Heredoc("a_file "+stored("cross", ".crt")+" 600 -", pki.Encode(k.cross)))
		_, err := k.Script(ctx, n, phaseTrust, "store", authorityScript+b.String())
		return err
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	return nil
}

// rotating returns a machine on which a CA rotation was interrupted, or nil.
func rotating(w *engine.World) *engine.Node {
	for _, n := range w.Members() {
		if w.Of(n, engine.PhaseInit).Value("rotating") == "yes" {
			return n
		}
	}
	return nil
}

func errRotating(n *engine.Node) error {
	return hint.Errorf("run paictl cluster certs rotate-ca to continue it", "a rotation of the cluster's authorities was interrupted, as %s says", n.Hostname)
}

// plan reports the changes that a run would make, beginning with the given step.
func (k *caRotation) plan(step caStep) {
	for ; step <= caForget; step++ {
		for _, n := range append(slices.Clone(k.masters), k.workers...) {
			detail := map[caStep]string{
				caTrust: "trusts the new authorities beside the old ones", caSign: "gets certificates of the new authorities for its keys",
				caForget: "trusts the old authorities no longer",
			}[step]
			c := engine.Change{Host: n.Hostname, Phase: step.phase(), Action: "update", Target: "certificates", Detail: detail}
			k.planned = append(k.planned, c)
			k.Emit(engine.Event{Kind: engine.EventPlanned, Host: n.Hostname, Phase: step.phase(), Change: &c})
		}
	}
}
