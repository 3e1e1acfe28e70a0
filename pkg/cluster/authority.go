package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	phaseTrust   = "trust"
	phaseSign    = "sign"
	phaseForget  = "forget"
	pkiDir       = "/etc/kubernetes/pki"
	rotationDir  = pkiDir + "/paictl-rotation"
	signerFile   = pkiDir + "/ca-signing.crt"
	clusterCA    = "ca"
	restartLimit = 30 * time.Minute
)

//go:embed scripts/authority.sh
var authorityScript string

// authorityNames are those that kubeadm makes, by their files' paths.
var authorityNames = []string{clusterCA, "etcd/ca", "front-proxy-ca"}

func authorityCert(name string) string { return path.Join(pkiDir, name+".crt") }
func authorityKey(name string) string  { return path.Join(pkiDir, name+".key") }

// caStep is how far a rotation of authorities has come.
type caStep int

const (
	caOld    caStep = iota // no one knows the new one
	caTrust                // who has come here trusts both
	caSign                 // and has certificates of the new one
	caForget               // and trusts the new one alone
)

func (s caStep) phase() string { return []string{"", phaseTrust, phaseSign, phaseForget}[s] }

// RotateAuthorities replaces the certificate authorities of a cluster: of Kubernetes, of etcd and of the API's extensions. All machines first
// trust the new ones beside the old ones, then get certificates of the new ones for the keys that they have, and then trust the old ones no longer. Masters follow
// one after the other. A certificate of the new authority by the old one goes with the API servers', so that programs which know only the old one go on
// until they start again. What the machines have tells how far an earlier run has come. leave goes on without nodes that can't be reached.
// With Options.DryRun it returns what it would do.
func RotateAuthorities(ctx context.Context, s *Spec, o Options, leave bool) ([]Change, error) {
	r := newRun(s, o)
	defer r.close()
	k := &caRotation{run: r, leave: leave, machines: map[*Node]*caMachine{}}
	r.started = o.Clock()
	r.emit(Event{Kind: EventRunStarted, Message: "cluster certs rotate-ca", Hosts: hostnames(s.Nodes), Phases: []string{phaseTrust, phaseSign, phaseForget}})
	if err := r.connect(ctx, s.Nodes); err != nil {
		return nil, err
	}
	for _, n := range s.ControlPlane() {
		if r.isAside(n) {
			return nil, hint.Errorf("start the machine, or take it out of the cluster: paictl node remove "+n.Hostname, "the master %s doesn't answer, and would come back with the old authority", n.Hostname)
		}
	}
	if !o.DryRun {
		held, unlock, err := r.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
		ctx = held
	}
	if err := k.rotate(ctx); err != nil {
		return nil, err
	}
	if !o.DryRun {
		for _, n := range r.alive(s.Nodes) {
			r.emit(Event{Kind: EventHostDone, Host: n.Hostname})
		}
	}
	return k.planned, r.summary("cluster certs rotate-ca", s.Nodes, k.planned)
}

// caRotation is a rotation of a cluster's authorities.
type caRotation struct {
	*run
	leave    bool
	masters  []*Node // members, by address
	workers  []*Node
	machines map[*Node]*caMachine
	old      map[string]*x509.Certificate // nil for machines that were left behind by a rotation that has ended
	next     map[string]*pki.Authority
	keys     map[string]secret.String // of the new ones, as PEM
	cross    *x509.Certificate
	planned  []Change
}

// caMachine is what a machine has.
type caMachine struct {
	certs  map[string][]*x509.Certificate // by path; files and kubelet's
	pems   map[string][]*x509.Certificate
	confs  map[string]caConf
	sums   map[string]string // of keys
	signer string
	due    []string
}

// caConf is a kubeconfig.
type caConf struct{ ca, cert []byte }

func (k *caRotation) rotate(ctx context.Context) error {
	if err := k.read(ctx); err != nil {
		return err
	}
	if len(k.masters) == 0 {
		return hint.Errorf("make it: paictl cluster up", "there is no cluster yet")
	}
	step, err := k.begin(ctx)
	if err != nil {
		return err
	}
	if k.opts.DryRun {
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

// read asks all machines that answer.
func (k *caRotation) read(ctx context.Context) error {
	var mu sync.Mutex
	for n, err := range k.each(ctx, k.alive(k.spec.Nodes), func(ctx context.Context, n *Node) error {
		res, err := k.run.read(ctx, n, "authority", "read", authorityScript+"a_read\n")
		if err != nil {
			return err
		}
		m, err := parseMachine(res.Stdout)
		if err != nil || m == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		k.machines[n] = m
		return nil
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	k.masters, k.workers = nil, nil
	for _, n := range k.spec.Nodes {
		switch {
		case k.machines[n] == nil:
		case n.ControlPlane:
			k.masters = append(k.masters, n)
		default:
			k.workers = append(k.workers, n)
		}
	}
	slices.SortFunc(k.masters, byAddress)
	return nil
}

func parseMachine(said []byte) (*caMachine, error) {
	a, err := answer.Parse(said)
	if err != nil || a.Value("member") != "yes" {
		return nil, err
	}
	m := &caMachine{certs: map[string][]*x509.Certificate{}, pems: map[string][]*x509.Certificate{}, confs: map[string]caConf{}, sums: map[string]string{}, signer: a.Value("signer")}
	for kind, into := range map[string]map[string][]*x509.Certificate{"cert": m.certs, "pem": m.pems} {
		for _, row := range a.All(kind) {
			if len(row) != 2 {
				continue
			}
			if into[row[0]], err = pki.Parse(decoded(row[1])); err != nil {
				return nil, fmt.Errorf("%s: %w", row[0], err)
			}
		}
	}
	for _, row := range a.All("conf") {
		if len(row) == 3 {
			m.confs[row[0]] = caConf{decoded(row[1]), decoded(row[2])}
		}
	}
	for _, row := range a.All("key") {
		if len(row) == 2 {
			m.sums[row[0]] = row[1]
		}
	}
	for _, row := range a.All("due") {
		m.due = append(m.due, row...)
	}
	if m.certs[authorityCert(clusterCA)] == nil {
		return nil, fmt.Errorf("%s is missing", authorityCert(clusterCA))
	}
	return m, nil
}

// begin finds the new authorities, or makes them, and returns the step to go on with.
func (k *caRotation) begin(ctx context.Context) (caStep, error) {
	var from *Node
	for _, n := range k.masters {
		if k.whole(k.machines[n]) {
			from = n
			break
		}
	}
	if from != nil {
		return k.resume(ctx, from)
	}
	leader := k.masters[0]
	keys, err := k.secrets(ctx, leader)
	if err != nil {
		return 0, err
	}
	have := k.machines[leader]
	current := map[string]*pki.Authority{}
	for _, name := range authorityNames {
		if n := len(have.certs[authorityCert(name)]); n != 1 {
			return 0, hint.Errorf("restore "+pkiDir+" of the masters from a backup", "%s of %s has %d certificates, and no rotation is under way", authorityCert(name), leader.Hostname, n)
		}
		if current[name], err = pki.Load(pki.Encode(have.certs[authorityCert(name)]...), []byte(keys[authorityKey(name)].Reveal())); err != nil {
			return 0, hint.Errorf("bring the authority's key to the masters; one that is kept elsewhere is rotated there", "the authority %s on %s: %w", name, leader.Hostname, err)
		}
	}
	for _, n := range k.masters {
		for _, name := range authorityNames {
			if c := k.machines[n].certs[authorityCert(name)]; len(c) != 1 || !c[0].Equal(current[name].Cert) {
				return 0, hint.Errorf("see which one made it: paictl cluster certs list", "%s of %s is not that of %s", authorityCert(name), n.Hostname, leader.Hostname)
			}
		}
	}
	now := k.opts.Clock()
	k.next, k.keys = map[string]*pki.Authority{}, map[string]secret.String{}
	if behind := k.behind(current[clusterCA].Cert); len(behind) > 0 { // by a rotation that has ended
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
	k.cross, err = current[clusterCA].Cross(k.next[clusterCA], now)
	return caTrust, err
}

// behind returns the machines that don't trust an authority alone.
func (k *caRotation) behind(ca *x509.Certificate) []*Node {
	return slices.DeleteFunc(slices.Clone(k.workers), func(n *Node) bool {
		c := k.machines[n].certs[authorityCert(clusterCA)]
		return len(c) == 1 && c[0].Equal(ca) && len(k.machines[n].due) == 0
	})
}

func stored(name, kind string) string { return path.Join(rotationDir, name+kind) }

// whole reports whether a master has all that a rotation needs.
func (*caRotation) whole(m *caMachine) bool {
	ok := len(m.certs[stored("cross", ".crt")]) == 1
	for _, name := range authorityNames {
		ok = ok && len(m.certs[stored(name, ".crt")]) == 1 && len(m.certs[stored(name, ".old.crt")]) == 1 && m.sums[stored(name, ".key")] != ""
	}
	return ok
}

// resume goes on with the authorities that an interrupted run has made.
func (k *caRotation) resume(ctx context.Context, from *Node) (caStep, error) {
	keys, err := k.secrets(ctx, from)
	if err != nil {
		return 0, err
	}
	m := k.machines[from]
	k.old, k.next, k.keys, k.cross = map[string]*x509.Certificate{}, map[string]*pki.Authority{}, map[string]secret.String{}, m.certs[stored("cross", ".crt")][0]
	for _, name := range authorityNames {
		k.old[name], k.keys[name] = m.certs[stored(name, ".old.crt")][0], keys[stored(name, ".key")]
		if k.next[name], err = pki.Load(pki.Encode(m.certs[stored(name, ".crt")]...), []byte(k.keys[name].Reveal())); err != nil {
			return 0, fmt.Errorf("the new authority %s on %s: %w", name, from.Hostname, err)
		}
	}
	step := caTrust
	for _, n := range k.masters {
		have := pki.Encode(k.machines[n].certs[authorityCert(clusterCA)]...)
		switch {
		case bytes.Equal(have, k.bundle(clusterCA, caOld)), bytes.Equal(have, k.bundle(clusterCA, caTrust)):
		case bytes.Equal(have, k.bundle(clusterCA, caSign)):
			step = max(step, caSign)
		case bytes.Equal(have, k.bundle(clusterCA, caForget)):
			step = caForget
		default:
			return 0, hint.Errorf("restore "+pkiDir+" of the masters from a backup", "%s of %s is neither the old authority nor the new one of the rotation that is under way", authorityCert(clusterCA), n.Hostname)
		}
	}
	return step, nil
}

// bundle is an authority's file in a step.
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

// secrets reads a master's keys of authorities.
func (k *caRotation) secrets(ctx context.Context, n *Node) (map[string]secret.String, error) {
	res, err := k.run.read(ctx, n, "authority", "keys", authorityScript+"a_keys\n")
	if err != nil {
		return nil, err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return nil, err
	}
	out := map[string]secret.String{}
	for _, row := range a.All("secret") {
		if len(row) == 2 {
			out[row[0]] = secret.String(decoded(row[1]))
		}
	}
	return out, nil
}

// store keeps the new authorities on all masters, before anyone is told of them.
func (k *caRotation) store(ctx context.Context) error {
	for n, err := range k.each(ctx, k.masters, func(ctx context.Context, n *Node) error {
		if k.whole(k.machines[n]) {
			return nil
		}
		var b strings.Builder
		for _, name := range authorityNames {
			b.WriteString(heredoc("a_file "+stored(name, ".key")+" 600", []byte(k.keys[name].Reveal())))
			b.WriteString(heredoc("a_file "+stored(name, ".old.crt")+" 600", pki.Encode(k.old[name])))
			b.WriteString(heredoc("a_file "+stored(name, ".crt")+" 600", pki.Encode(k.next[name].Cert)))
		}
		b.WriteString(heredoc("a_file "+stored("cross", ".crt")+" 600", pki.Encode(k.cross)))
		_, err := k.run.script(ctx, n, phaseTrust, "store", authorityScript+b.String())
		return err
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	return nil
}

// bring takes all machines to a step: the masters one after the other, then the others.
func (k *caRotation) bring(ctx context.Context, step caStep) error {
	for _, n := range k.masters {
		if err := k.change(ctx, n, step); err != nil {
			return fmt.Errorf("%s: %w", n.Hostname, err)
		}
	}
	errs := k.each(ctx, k.alive(k.workers), func(ctx context.Context, n *Node) error { return k.change(ctx, n, step) })
	if err := k.setAsideAll(ctx, step.phase(), errs); err != nil {
		return err
	}
	leader := k.masters[0]
	ca := base64.StdEncoding.EncodeToString(k.bundle(clusterCA, step))
	_, err := k.run.script(ctx, leader, step.phase(), "cluster-info", selfAPI(k.spec, leader)+authorityScript+"a_info "+ca+"\n")
	return err
}

// change takes one machine to a step.
func (k *caRotation) change(ctx context.Context, n *Node, step caStep) error {
	edits, err := k.edits(n, step)
	if err != nil {
		return err
	}
	m := k.machines[n]
	if len(edits) == 0 && len(m.due) == 0 {
		return nil
	}
	return k.tell(ctx, n, step.phase(), func(ctx context.Context, n *Node) ([]Change, error) {
		var done []Change
		if len(edits) > 0 {
			var b strings.Builder
			b.WriteString("a_due " + strings.Join(holders(n), " ") + "\n")
			for _, e := range edits {
				b.WriteString(e.shell)
				done = append(done, Change{Action: "update", Target: e.path, Detail: e.detail})
			}
			if _, err := k.run.script(ctx, n, step.phase(), "apply", authorityScript+b.String()); err != nil {
				return nil, err
			}
		}
		restarted, err := k.restart(ctx, n, step)
		if err != nil {
			return done, err
		}
		m.due = nil
		// What it has now: the next step changes it again.
		res, err := k.run.read(ctx, n, "authority", "read", authorityScript+"a_read\n")
		if err != nil {
			return done, err
		}
		now, err := parseMachine(res.Stdout)
		if err != nil {
			return done, err
		}
		k.mu.Lock()
		k.machines[n] = now
		k.mu.Unlock()
		return append(done, restarted...), nil
	})
}

// holders are what has read certificates on a machine.
func holders(n *Node) []string {
	if n.ControlPlane {
		return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", kubeletComponent}
	}
	return []string{kubeletComponent}
}

const kubeletComponent = "kubelet"

// restart restarts what has read other certificates than are there now, and waits for each.
func (k *caRotation) restart(ctx context.Context, n *Node, step caStep) ([]Change, error) {
	var done []Change
	if n.ControlPlane {
		res, err := k.exec(ctx, n, ssh.Script{Name: step.phase() + "/restart", Mutates: true, Timeout: restartLimit,
			Body: preludeScript + fmt.Sprintf("sh \"$R%s\" 1\n", renewScript)})
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(res.Stdout)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "restarted "); ok {
				done = append(done, Change{Action: "restart", Target: "static pod " + name})
			}
		}
	}
	wait := 0
	if k.spec.Config.Kubernetes.Kubernetes.NetworkPlugin == flannelPlugin {
		wait = 1
	}
	_, err := k.run.script(ctx, n, step.phase(), "kubelet", nodeReady(n)+kubeletScript+authorityScript+fmt.Sprintf("a_kubelet %d\n", wait))
	if err != nil {
		return done, err
	}
	return append(done, Change{Action: "restart", Target: kubeletName}), nil
}

// caEdit changes one file.
type caEdit struct{ path, detail, shell string }

// edits are the changes that take a machine to a step, in their order.
func (k *caRotation) edits(n *Node, step caStep) ([]caEdit, error) {
	m := k.machines[n]
	var out []caEdit
	file := func(to, mode string, data []byte, detail string) {
		out = append(out, caEdit{to, detail, heredoc("a_file "+shell.Quote(to)+" "+mode, data)})
	}
	signer := func(to string) {
		if m.signer != "" && m.signer != to && (m.signer == signerFile || m.signer == authorityCert(clusterCA)) {
			out = append(out, caEdit{"/etc/kubernetes/manifests/kube-controller-manager.yaml", "signs by " + to, "a_signer " + to + "\n"})
		}
	}
	if n.ControlPlane && step < caForget {
		by := k.old[clusterCA]
		if step == caSign {
			by = k.next[clusterCA].Cert
		}
		if have := m.certs[signerFile]; len(have) != 1 || !have[0].Equal(by) {
			file(signerFile, "644", pki.Encode(by), "")
		}
		signer(signerFile)
	}
	for _, name := range authorityNames {
		have, want := m.certs[authorityCert(name)], k.bundle(name, step)
		if have != nil && !bytes.Equal(pki.Encode(have...), want) {
			file(authorityCert(name), "644", want, "")
		}
		if _, ours := m.sums[authorityKey(name)]; !ours || k.old == nil || step < caSign {
			continue
		}
		if sum := sha256.Sum256([]byte(k.keys[name].Reveal())); m.sums[authorityKey(name)] != hex.EncodeToString(sum[:]) {
			file(authorityKey(name), "600", []byte(k.keys[name].Reveal()), "")
		}
	}
	if n.ControlPlane && step == caForget {
		signer(authorityCert(clusterCA))
	}
	more, err := k.leaves(n, step)
	return append(out, more...), err
}

// leaves are the changes of what is signed by authorities, and of kubeconfigs.
func (k *caRotation) leaves(n *Node, step caStep) ([]caEdit, error) {
	m := k.machines[n]
	var out []caEdit
	for _, p := range slices.Sorted(maps.Keys(m.certs)) {
		if strings.HasPrefix(p, rotationDir) || slices.ContainsFunc(authorityNames, func(n string) bool { return authorityCert(n) == p }) {
			continue
		}
		chain, err := k.again(n, m.certs[p], step)
		if err != nil {
			return nil, err
		}
		if chain != nil && p != signerFile {
			out = append(out, caEdit{p, "", heredoc("a_file "+shell.Quote(p)+" 644", chain)})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.pems)) {
		chain, err := k.again(n, m.pems[p], step)
		if err != nil {
			return nil, err
		}
		if chain != nil {
			out = append(out, caEdit{p, "", heredoc("a_pem "+shell.Quote(p), chain)})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.confs)) {
		conf, want := m.confs[p], k.bundle(clusterCA, step)
		var chain []byte
		if certs, err := pki.Parse(conf.cert); err == nil { // the kubelet's names a file instead
			if chain, err = k.again(n, certs, step); err != nil {
				return nil, err
			}
		}
		if chain != nil || !bytes.Equal(conf.ca, want) {
			out = append(out, caEdit{p, "", fmt.Sprintf("a_conf %s %s %s\n", shell.Quote(p),
				base64.StdEncoding.EncodeToString(want), shell.Quote(base64.StdEncoding.EncodeToString(chain)))})
		}
	}
	return out, nil
}

// again returns a certificate signed by the new authority where the old one has signed it, nil where it stays as it is. That of a server goes
// with the new authority's own by the old one.
func (k *caRotation) again(n *Node, have []*x509.Certificate, step caStep) ([]byte, error) {
	if step < caSign || have[0].IsCA || !n.ControlPlane && !kubelets(n, have[0]) {
		return nil, nil
	}
	for _, name := range authorityNames {
		next := k.next[name]
		switch {
		case pki.Signed(next.Cert, have[0]):
			return nil, nil
		case k.old != nil && !pki.Signed(k.old[name], have[0]):
			continue
		case k.old == nil && (n.ControlPlane || !bytes.Equal(have[0].RawIssuer, next.Cert.RawSubject)):
			continue // of a machine that was left behind, only its kubelet's: no one has the authority any more that has signed it
		}
		c, err := next.Certify(have[0], k.opts.Clock())
		if err != nil {
			return nil, err
		}
		if name == clusterCA && k.cross != nil && slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
			return pki.Encode(c, k.cross), nil
		}
		return pki.Encode(c), nil
	}
	return nil, nil
}

// kubelets reports whether a certificate is one that a machine's kubelet may have. Who rules the machine can put any other in its place, to have it signed.
func kubelets(n *Node, c *x509.Certificate) bool {
	if c.Subject.CommonName != "system:node:"+n.Hostname || !slices.Equal(c.Subject.Organization, []string{"system:nodes"}) || len(c.EmailAddresses)+len(c.URIs) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.DNSNames, func(name string) bool { return name != n.Hostname }) &&
		!slices.ContainsFunc(c.IPAddresses, func(ip net.IP) bool { return ip.String() != n.HostIP })
}

// refuseLeft refuses to forget the old authority while nodes of the cluster have no certificate of the new one.
func (k *caRotation) refuseLeft(ctx context.Context) error {
	leader := k.masters[0]
	res, err := k.run.read(ctx, leader, phaseForget, "nodes", selfAPI(k.spec, leader)+authorityScript+"a_nodes\n")
	if err != nil {
		return err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return err
	}
	var left []string
	for _, row := range a.All("node") {
		if len(row) > 0 && !slices.ContainsFunc(k.spec.Nodes, func(n *Node) bool { return n.Hostname == row[0] && k.machines[n] != nil && !k.isAside(n) }) {
			left = append(left, row[0])
		}
	}
	slices.Sort(left)
	if len(left) == 0 {
		return nil
	}
	message := "the old authority is still needed by " + strings.Join(left, ", ") + ", which couldn't be reached"
	if k.leave {
		k.emit(Event{Kind: EventWarning, Phase: phaseForget, Message: message, Hint: "once it is back: paictl cluster certs rotate-ca, which brings it the new one"})
		return nil
	}
	return hint.Errorf("run the same command again once it answers, or take it out of the cluster: paictl node remove "+left[0]+"; to go on without it: --leave-behind", "%s", message)
}

// end restarts what has read the old authority in the cluster's own pods, and takes away what a rotation needs.
func (k *caRotation) end(ctx context.Context) error {
	leader := k.masters[0]
	if k.old != nil {
		if _, err := k.run.script(ctx, leader, phaseForget, "pods", selfAPI(k.spec, leader)+authorityScript+"a_renew_pods\n"); err != nil {
			return err
		}
	}
	for n, err := range k.each(ctx, k.masters, func(ctx context.Context, n *Node) error {
		_, err := k.run.script(ctx, n, phaseForget, "end", authorityScript+"a_end\n")
		return err
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	return nil
}

// rotating returns a member on which a rotation of authorities was interrupted, nil where there is none.
func (w *world) rotating() *Node {
	for _, n := range w.members() {
		if w.of(n, phaseInit).Value("rotating") == "yes" {
			return n
		}
	}
	return nil
}

// plan tells what a run would do, beginning with a step.
func (k *caRotation) plan(step caStep) {
	for ; step <= caForget; step++ {
		for _, n := range append(slices.Clone(k.masters), k.workers...) {
			detail := map[caStep]string{
				caTrust: "trusts the new authorities beside the old ones", caSign: "gets certificates of the new authorities for its keys",
				caForget: "trusts the old authorities no longer",
			}[step]
			c := Change{Host: n.Hostname, Phase: step.phase(), Action: "update", Target: "certificates", Detail: detail}
			k.planned = append(k.planned, c)
			k.emit(Event{Kind: EventPlanned, Host: n.Hostname, Phase: step.phase(), Change: &c})
		}
	}
}
