package cluster

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/pki"
)

// caMachine holds the certificates and the checksums of keys that a machine has reported.
type caMachine struct {
	certs  map[string][]*x509.Certificate // by path
	pems   map[string][]*x509.Certificate // the kubelet's certificates, in files with their keys
	confs  map[string]caConf
	keys   map[string]string // checksums of CAs' keys
	sums   map[string]string // checksums of the other files
	signer string
	due    []string
	clock  time.Time
}

type caConf struct{ ca, cert []byte }

func (k *caRotation) machine(n *engine.Node) *caMachine {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	return k.machines[n]
}

func (k *caRotation) look(ctx context.Context, n *engine.Node) error {
	res, err := k.Read(ctx, n, "authority", "read", authorityScript+"a_read\n")
	if err != nil {
		return err
	}
	m, err := parseMachine(n, res.Stdout)
	if err != nil {
		return err
	}
	k.Mu.Lock()
	defer k.Mu.Unlock()
	k.machines[n] = m
	return nil
}

// parseMachine parses the output of the script on a machine. An attacker with root on a worker can forge that output. parseMachine therefore
// ignores all certificates from a worker except those of the worker's kubelet.
func parseMachine(n *engine.Node, said []byte) (*caMachine, error) {
	a, err := answer.Parse(said)
	if err != nil || a.Value("member") != "yes" {
		return nil, err
	}
	m := &caMachine{certs: map[string][]*x509.Certificate{}, pems: map[string][]*x509.Certificate{}, confs: map[string]caConf{}, keys: map[string]string{}, sums: map[string]string{}}
	for kind, into := range map[string]map[string][]*x509.Certificate{"cert": m.certs, "pem": m.pems} {
		for _, row := range a.All(kind) {
			if len(row) != 3 || kind == "cert" && !n.ControlPlane && row[0] != authorityCert(kubernetesCA) || kind == "pem" && !slices.Contains(kubeletPEMs, row[0]) {
				continue
			}
			certs, err := pki.Parse(engine.Decoded(row[1]))
			if err != nil && kind == "pem" && row[0] != kubeletCert {
				continue // the kubelet requests a new one
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", row[0], err)
			}
			into[row[0]], m.sums[row[0]] = certs, row[2]
		}
	}
	for _, row := range a.All("conf") {
		if len(row) == 4 && (n.ControlPlane || row[0] == kubeletConf) {
			m.confs[row[0]], m.sums[row[0]] = caConf{engine.Decoded(row[1]), engine.Decoded(row[2])}, row[3]
		}
	}
	if n.ControlPlane {
		m.signer = a.Value("signer")
		for _, row := range a.All("key") {
			if len(row) == 2 {
				m.keys[row[0]] = row[1]
			}
		}
	}
	for _, row := range a.All("due") {
		m.due = append(m.due, row...)
	}
	if seconds, err := strconv.ParseInt(a.Value("now"), 10, 64); err == nil {
		m.clock = time.Unix(seconds, 0)
	}
	if m.certs[authorityCert(kubernetesCA)] == nil {
		return nil, fmt.Errorf("%s is missing", authorityCert(kubernetesCA))
	}
	return m, nil
}

const (
	kubeletConf = "/etc/kubernetes/kubelet.conf"
	kubeletCert = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	// skew limits how far a machine's clock may be behind. Certificates are valid from one hour before they are issued.
	skew = 30 * time.Minute
)

var kubeletPEMs = []string{kubeletCert, "/var/lib/kubelet/pki/kubelet-server-current.pem"}
