package watchdog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// Kinds of servers whose certificates are checked.
const (
	kindAPIServer = "apiserver"
	kindKubelet   = "kubelet"
	kindTarget    = "target"
)

type server struct {
	kind, name, address, serverName string
}

// target returns the server's name in the metrics of probes: kind/name.
func (s server) target() string { return s.kind + "/" + s.name }

// CheckCertificates checks the certificates of all servers once. The metrics then contain only these servers. If the API server doesn't respond,
// CheckCertificates checks the servers of the previous check.
func (w *Watchdog) CheckCertificates(ctx context.Context) {
	start := time.Now()
	servers, err := w.servers(ctx)
	if err != nil {
		w.log("looking at the servers known so far", "err", err)
	}
	found := make([]certificate, len(servers))
	probes := make([]probe, len(servers))
	var group errgroup.Group
	group.SetLimit(w.config.Concurrency)
	for i, s := range servers {
		group.Go(func() error {
			probes[i], found[i] = w.look(ctx, s)
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	if ctx.Err() == nil {
		w.results.setCertificates(servers, probes, found, time.Since(start), time.Now())
	}
}

// listTimeout is the timeout for listing the nodes. The list takes many requests in a large cluster.
const listTimeout = time.Minute

// servers returns the servers of the configuration and of the cluster. If the API server doesn't respond, it returns the servers of the previous
// check and an error.
func (w *Watchdog) servers(ctx context.Context) ([]server, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	apiServers, err1 := w.api.Servers(ctx)
	nodes, err2 := w.api.Nodes(ctx)
	if err := errors.Join(err1, err2); err != nil {
		if last := w.results.lastServers(); last != nil {
			return last, err
		}
		return w.targets(), err
	}
	out := w.targets()
	for _, address := range apiServers {
		out = append(out, server{kind: kindAPIServer, name: address, address: address, serverName: "kubernetes.default.svc"})
	}
	for _, n := range nodes {
		address := net.JoinHostPort(n.Address, strconv.Itoa(w.config.KubeletPort))
		out = append(out, server{kind: kindKubelet, name: n.Name, address: address, serverName: n.Name})
	}
	return out, nil
}

func (w *Watchdog) targets() []server {
	var out []server
	for _, t := range w.config.Targets {
		out = append(out, server{kind: kindTarget, name: t.Name, address: t.Address, serverName: t.ServerName})
	}
	return out
}

func (w *Watchdog) look(ctx context.Context, s server) (probe, certificate) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.config.Timeout))
	defer cancel()
	start := time.Now()
	expires, err := Expiry(ctx, s.address, s.serverName)
	p := probe{target: s.target(), took: time.Since(start), ok: err == nil}
	if err != nil && ctx.Err() == nil {
		w.log("no certificate", "server", p.target, "err", err)
	}
	return p, certificate{server: s, expires: expires}
}

// Expiry returns the earliest expiry of the certificates that a server sends, including its chain. It only performs the handshake, and sends no
// data. It doesn't verify the certificates, because a kubelet signs its own certificate, and an expired certificate must be reported.
func Expiry(ctx context.Context, address, serverName string) (time.Time, error) {
	var chain []*x509.Certificate
	if serverName == "" {
		serverName, _, _ = net.SplitHostPort(address)
	}
	dialer := tls.Dialer{Config: &tls.Config{
		ServerName:         serverName,
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // the connection is only used for the handshake, see above
		// This function receives the certificate even if the server later requires a client certificate.
		VerifyConnection: func(state tls.ConnectionState) error {
			chain = state.PeerCertificates
			return nil
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if conn != nil {
		_ = conn.Close() // nothing was sent
	}
	if len(chain) == 0 {
		if err == nil {
			err = errors.New("the server sent no certificate")
		}
		return time.Time{}, fmt.Errorf("shake hands with %s: %w", address, err)
	}
	first := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first, nil
}
