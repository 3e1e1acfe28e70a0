// Package apiproxy forwards TCP connections of a machine to a master whose API server is ready.
// In: a file with the masters' addresses, which is read again when it changes. Out: a listening address.
//
// The proxy runs as a systemd service on each machine, and not as a pod, because the kubelet needs the API before it runs any pod. The proxy
// doesn't terminate TLS: a client verifies the API server's certificate as if there were no proxy.
package apiproxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/siderolabs/go-loadbalancer/upstream"
	"github.com/siderolabs/tcpproxy"
	"golang.org/x/sys/unix"
)

const (
	checkEvery   = 2 * time.Second
	checkTimeout = 6 * time.Second // longer than the API server takes to find out that its etcd is unavailable
	dialTimeout  = 2 * time.Second
	// silence is how long data sent to a master may stay unacknowledged before the proxy closes the connection. The limit is necessary because a master
	// without power doesn't close its connections.
	silence = 5 * time.Second
	// verifyAfter is the number of checks that reuse one connection to an API server. The next check opens a new connection and verifies the certificate
	// again. More frequent verification would use a whole processor on each master of a large cluster.
	verifyAfter = 30
	// leaveAfter is how long a master may be not ready before the proxy closes its connections. The proxy closes them only if another master is ready.
	// The delay keeps the connections if a single check is late. It is shorter than the 50 seconds after which Kubernetes considers a silent kubelet
	// dead.
	leaveAfter = 8 * time.Second
)

// The proxy prefers ready masters. If no master is ready, it uses a master that responds, because an error response is better than a closed
// connection.
const (
	tierReady upstream.Tier = iota
	tierAnswers
)

// Run runs the proxy with the flags in args until ctx ends. It writes its log to log.
func Run(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("pai-api-proxy", flag.ContinueOnError)
	flags.SetOutput(log)
	listen := flags.String("listen", "127.0.0.1:6444", "address at which the API is served")
	servers := flags.String("servers", "/etc/paictl/api-servers", "file with a HOST:PORT of an API server in each line; it is read again when it changes")
	ca := flags.String("ca", "/etc/kubernetes/pki/ca.crt", "certificate of the cluster's authority; if the file is missing, the checks don't verify servers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(*listen)
	if err != nil {
		return err
	}
	p := &proxy{servers: *servers, ca: *ca, name: host, log: slog.New(slog.NewTextHandler(log, nil))}
	return p.run(ctx, *listen)
}

type proxy struct {
	servers, ca, name string
	log               *slog.Logger
	list              *upstream.List[*server]
	known             map[string]*server
	others            atomic.Pointer[[]*server] // those in known
}

func (p *proxy) run(ctx context.Context, listen string) error {
	addresses, err := readServers(p.servers)
	if err != nil {
		return err
	}
	p.list, err = upstream.NewList(slices.Values(p.resolve(addresses)), upstream.WithHealthcheckInterval(checkEvery),
		upstream.WithHealthcheckTimeout(checkTimeout), upstream.WithHealthCheckJitter(0.2), upstream.WithTiers(tierReady, tierAnswers, tierReady),
		// A single failed check removes a master from the list, and a single successful check adds it again.
		upstream.WithLowHighScores(-1, 0), upstream.WithInitialScore(0))
	if err != nil {
		return err
	}
	defer p.list.Shutdown()
	tcp := &tcpproxy.Proxy{}
	tcp.AddRoute(listen, target{p})
	if err := tcp.Start(); err != nil {
		return err
	}
	defer func() { _ = tcp.Close() }() // it is done
	p.log.InfoContext(ctx, "serving", "listen", listen, "servers", strings.Join(addresses, " "))
	failed := make(chan error, 1)
	go func() { failed <- tcp.Wait() }()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
		}
		now, err := readServers(p.servers)
		if err != nil || slices.Equal(now, addresses) {
			continue // if the file is missing or invalid for a moment, nothing changes
		}
		addresses = now
		p.list.Reconcile(slices.Values(p.resolve(addresses)))
		p.log.InfoContext(ctx, "servers changed", "servers", strings.Join(addresses, " "))
	}
}

// resolve returns the servers for addresses. It reuses the server object of an address that was also in the previous call.
func (p *proxy) resolve(addresses []string) []*server {
	known := map[string]*server{}
	var out []*server
	for _, a := range addresses {
		s := p.known[a]
		if s == nil {
			s = p.newServer(a)
		}
		known[a] = s
		out = append(out, s)
	}
	p.known = known
	p.others.Store(&out)
	return out
}

// readServers returns the distinct addresses in a file with one address per line. It skips blank lines and comments (#). It returns an error if the
// file contains no address.
func readServers(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []string
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, _, err := net.SplitHostPort(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s names no API server", file)
	}
	return out, nil
}

type server struct {
	address, ca, name string
	log               *slog.Logger
	client            *http.Client
	was               string
	checks            int
	p                 *proxy
	ready             atomic.Bool
	notReady          time.Time // the time since which it isn't ready; zero if it is ready

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (p *proxy) newServer(address string) *server {
	s := &server{address: address, ca: p.ca, name: p.name, log: p.log, p: p, conns: map[net.Conn]struct{}{}}
	s.client = &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout, Control: acknowledged}).DialContext, TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			// The CA's file doesn't exist until the machine joins the cluster, so VerifyConnection loads the CA and verifies the chain.
			InsecureSkipVerify: true, //nolint:gosec // by VerifyConnection
			VerifyConnection:   s.verify,
		},
	}}
	return s
}

func acknowledged(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(dialTimeout.Milliseconds()))
	})
	return cmp.Or(err, set)
}

// verify returns an error for a certificate that clients of the API would reject. The cluster's CA must have signed the certificate, because the
// address may by now belong to a machine of another cluster. The certificate must also contain the API's name, which the certificate of a master
// doesn't contain before the master gets its new settings.
func (s *server) verify(c tls.ConnectionState) error {
	if err := c.PeerCertificates[0].VerifyHostname(s.name); err != nil {
		return err
	}
	b, err := os.ReadFile(s.ca)
	if errors.Is(err, os.ErrNotExist) {
		return nil // not joined yet: kubeadm itself checks the CA
	}
	if err != nil {
		return err
	}
	roots, others := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return fmt.Errorf("%s holds no certificate", s.ca)
	}
	for _, cert := range c.PeerCertificates[1:] {
		others.AddCert(cert)
	}
	_, err = c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others})
	return err
}

// HealthCheck checks whether the server is ready. If the server isn't ready for leaveAfter and another server is ready, HealthCheck closes the
// server's connections.
func (s *server) HealthCheck(ctx context.Context) (upstream.Tier, error) {
	if s.checks++; s.checks%verifyAfter == 0 {
		s.client.CloseIdleConnections()
	}
	tier, said, err := s.ask(ctx)
	if err != nil {
		said = err.Error()
	}
	if said != s.was && ctx.Err() == nil {
		s.log.InfoContext(ctx, "server", "address", s.address, "says", said)
		s.was = said
	}
	s.ready.Store(err == nil && tier == tierReady)
	switch {
	case s.ready.Load():
		s.notReady = time.Time{}
	case ctx.Err() != nil && err != nil: // the proxy is stopping
	case s.notReady.IsZero():
		s.notReady = time.Now()
	case time.Since(s.notReady) >= leaveAfter && s.p.hasReady():
		if n := s.leave(); n > 0 {
			s.log.InfoContext(ctx, "connections closed", "address", s.address, "connections", n, "not ready for", time.Since(s.notReady).Round(time.Second))
		}
	}
	return tier, err
}

func (p *proxy) hasReady() bool {
	return slices.ContainsFunc(*p.others.Load(), func(s *server) bool { return s.ready.Load() })
}

// leave closes all connections to the server and returns their number. The clients then connect to another server.
func (s *server) leave() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close() // it is abandoned
	}
	return len(s.conns)
}

func (s *server) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
}

func (s *server) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *server) ask(ctx context.Context) (upstream.Tier, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+"/readyz", nil)
	if err != nil {
		return -1, "", err
	}
	res, err := s.client.Do(req)
	// The server accepted the connection but didn't respond in time. The timeout of the dialer is also a DeadlineExceeded, but then the server may be
	// off.
	if op, ok := errors.AsType[*net.OpError](err); errors.Is(err, context.DeadlineExceeded) && (!ok || op.Op != "dial") {
		return tierAnswers, "accepts connections, but doesn't answer", nil
	}
	if err != nil {
		return -1, "", err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // only the status has information
	if res.StatusCode == http.StatusOK {
		return tierReady, "ready", nil
	}
	// The server may have returned 403. An API server without etcd can't read its RBAC rules, so it rejects all anonymous requests.
	return tierAnswers, res.Status, nil
}

type target struct{ p *proxy }

// HandleConn connects to the next server in the list. If that fails, it tries the other servers in turn.
func (t target) HandleConn(src net.Conn) {
	var last error
	for {
		s, err := t.p.list.Pick()
		if err != nil { // none is left
			last = errors.Join(last, err)
			break
		}
		d := net.Dialer{Timeout: dialTimeout, KeepAlive: silence}
		dst, err := d.Dial("tcp", s.address)
		if err != nil {
			last = err
			t.p.list.Down(s)
			continue
		}
		to := tcpproxy.To(s.address)
		to.KeepAlivePeriod, to.TCPUserTimeout = silence, silence
		to.DialContext = func(context.Context, string, string) (net.Conn, error) { return dst, nil }
		s.add(dst)
		defer s.remove(dst)
		to.HandleConn(src)
		return
	}
	t.p.log.Info("no server", "error", last)
	_ = src.Close()
}
