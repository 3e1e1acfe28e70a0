package cluster

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// caEdit is the change of one file. detail is a text for the report, and shell is the command that makes the change.
type caEdit struct{ path, detail, shell string }

// edits returns the changes of a machine's files at the given step, in the order in which they must be made.
func (k *caRotation) edits(n *engine.Node, m *caMachine, step caStep) ([]caEdit, error) {
	var out []caEdit
	file := func(to, mode string, data []byte) {
		out = append(out, caEdit{to, "", engine.Heredoc("a_file "+shell.Quote(to)+" "+mode+" -", data)})
	}
	signer := func(to string) {
		if m.signer != "" && m.signer != to && (m.signer == signerFile || m.signer == authorityCert(kubernetesCA)) {
			out = append(out, caEdit{"/etc/kubernetes/manifests/kube-controller-manager.yaml", "signs by " + to, "a_signer " + to + "\n"})
		}
	}
	if n.ControlPlane && step < caForget {
		by := k.old[kubernetesCA]
		if step == caSign {
			by = k.next[kubernetesCA].Cert
		}
		if have := m.certs[signerFile]; len(have) != 1 || !have[0].Equal(by) {
			file(signerFile, "644", pki.Encode(by))
		}
		signer(signerFile)
	}
	for _, name := range authorityNames {
		have, want := m.certs[authorityCert(name)], k.bundle(name, step)
		if have != nil && !bytes.Equal(pki.Encode(have...), want) {
			file(authorityCert(name), "644", want)
		}
		if !n.ControlPlane || k.old == nil || step < caSign { // a worker never gets a key, even if a file exists at that path
			continue
		}
		if sum := sha256.Sum256([]byte(k.keys[name].Reveal())); m.keys[authorityKey(name)] != hex.EncodeToString(sum[:]) {
			file(authorityKey(name), "600", []byte(k.keys[name].Reveal()))
		}
	}
	if n.ControlPlane && step == caForget {
		signer(authorityCert(kubernetesCA))
	}
	more, err := k.leaves(n, m, step)
	return append(out, more...), err
}

// leaves returns the changes of kubeconfigs and of certificates that the CAs have signed.
func (k *caRotation) leaves(n *engine.Node, m *caMachine, step caStep) ([]caEdit, error) {
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
			out = append(out, caEdit{p, "", engine.Heredoc("a_file "+shell.Quote(p)+" 644 "+shell.Quote(m.sums[p]), chain)})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.pems)) {
		chain, err := k.again(n, m.pems[p], step)
		if err != nil {
			return nil, err
		}
		if chain != nil {
			out = append(out, caEdit{p, "", engine.Heredoc("a_pem "+shell.Quote(p)+" "+shell.Quote(m.sums[p]), chain)})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.confs)) {
		conf, want := m.confs[p], k.bundle(kubernetesCA, step)
		var chain []byte
		if certs, err := pki.Parse(conf.cert); err == nil { // the kubelet's kubeconfig names a file instead
			if chain, err = k.again(n, certs, step); err != nil {
				return nil, err
			}
		}
		if !k.ours(conf.ca) && (k.old != nil || p != kubeletConf) {
			continue // it belongs to another server
		}
		if chain != nil || !bytes.Equal(conf.ca, want) {
			out = append(out, caEdit{p, "", fmt.Sprintf("a_conf %s %s %s %s\n", shell.Quote(p), shell.Quote(m.sums[p]),
				base64.StdEncoding.EncodeToString(want), shell.Quote(base64.StdEncoding.EncodeToString(chain)))})
		}
	}
	return out, nil
}

// ours reports whether ca contains only CAs of this cluster: the old CA, the new CA, or the old and the new CA.
func (k *caRotation) ours(ca []byte) bool {
	for step := caOld; step <= caForget; step++ {
		if bytes.Equal(ca, k.bundle(kubernetesCA, step)) {
			return true
		}
	}
	return false
}

// again returns a new certificate for the same key, signed by the new CA. It returns nil if the old CA hasn't signed the existing certificate. For a
// server certificate, the result also contains the certificate of the new CA that the old CA has signed.
func (k *caRotation) again(n *engine.Node, have []*x509.Certificate, step caStep) ([]byte, error) {
	if step < caSign || have[0].IsCA || !n.ControlPlane && !kubelets(n, have[0]) {
		return nil, nil
	}
	names := authorityNames
	if !n.ControlPlane {
		names = []string{kubernetesCA}
	}
	for _, name := range names {
		next := k.next[name]
		switch {
		case pki.Signed(next.Cert, have[0]):
			return nil, nil
		case k.old != nil && !pki.Signed(k.old[name], have[0]):
			continue
		case k.old == nil && (n.ControlPlane || !bytes.Equal(have[0].RawIssuer, next.Cert.RawSubject)):
			continue // for a machine that was left out, only its kubelet's certificate counts: the CA that signed it no longer exists
		}
		c, err := next.Certify(have[0], k.Opts.Clock())
		if err != nil {
			return nil, err
		}
		if name == kubernetesCA && k.cross != nil && slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
			return pki.Encode(c, k.cross), nil
		}
		return pki.Encode(c), nil
	}
	return nil, nil
}

// kubelets reports whether c is a valid certificate for the kubelet of n. Without this check, an attacker with root on the machine could replace
// the kubelet's certificate with any other certificate, and the new CA would sign that certificate.
func kubelets(n *engine.Node, c *x509.Certificate) bool {
	const uses = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	for _, use := range c.ExtKeyUsage {
		if use != x509.ExtKeyUsageClientAuth && use != x509.ExtKeyUsageServerAuth {
			return false
		}
	}
	if c.KeyUsage&^uses != 0 || len(c.UnknownExtKeyUsage) > 0 || c.Subject.CommonName != "system:node:"+n.Hostname || !slices.Equal(c.Subject.Organization, []string{"system:nodes"}) || len(c.EmailAddresses)+len(c.URIs) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.DNSNames, func(name string) bool { return name != n.Hostname }) &&
		!slices.ContainsFunc(c.IPAddresses, func(ip net.IP) bool { return ip.String() != n.HostIP })
}
