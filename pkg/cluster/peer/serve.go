package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/httpserver"
)

// The limits of a machine that serves files. Even a client with the token may be hostile, so a single client must not be able to use all slots.
const (
	maxConnections = 128
	maxTransfers   = 8
	maxPerMachine  = 3 // transfers to one address
	headerTime     = 5 * time.Second
	// writeTime is the timeout of a write to a machine that accepts no data. slowest is the minimum average rate, in bytes per second.
	writeTime = 20 * time.Second
	slowest   = 64 << 10
)

// serverName is the name in all certificates. Clients identify a machine by its certificate and not by its name.
const serverName = "pai-peer"

// Serve serves files until ctx ends, s.Seconds have passed, or gone is closed at the end of the run. It prints a Ready to out.
func Serve(ctx context.Context, s Serving, out io.Writer, gone <-chan struct{}) error {
	if err := s.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.Seconds)*time.Second)
	defer cancel()
	cert, der, err := newCertificate()
	if err != nil {
		return err
	}
	l, err := listen(ctx, s.Address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:   newShelf(s),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}},
		// The limits include the TLS handshake. HTTP/2 is disabled, because one HTTP/2 connection could request many files at the same time.
		ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, IdleTimeout: headerTime, MaxHeaderBytes: 4 << 10,
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		// Discard errors, because any client that can reach the port could fill a log with errors.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	served := make(chan error, 1)
	go func() {
		served <- server.ServeTLS(httpserver.Limit(l, httpserver.Options{Connections: maxConnections}), "", "")
	}()
	defer func() { _ = server.Close() }() // close at once: a partial transfer is useless when the run has ended
	if err := say(out, Ready{Address: l.Addr().String(), Certificate: der}); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case <-gone:
	case <-ctx.Done():
	}
	return nil
}

func (s Serving) check() error {
	switch {
	case len(s.Token) < 32:
		return errors.New("the token is too short")
	case !filepath.IsAbs(s.Folder):
		return fmt.Errorf("the folder %q has no absolute path", s.Folder)
	case s.Seconds <= 0:
		return errors.New("no time is given after which it ends")
	}
	for _, name := range s.Files {
		if !IsSum(name) {
			return fmt.Errorf("%q is not a sha256 in hex", name)
		}
	}
	return nil
}

// listen listens on the address, or on another port of the same host if the port is in use.
func listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		return nil, fmt.Errorf("%q is not the address of one machine", host)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	return l, err
}

// newCertificate creates a key and a self-signed certificate. The certificate is valid longer than any run.
func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		// The range allows for clocks that differ by a day. It may be wide, because clients receive the certificate over SSH.
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(72 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, der, nil
}

type shelf struct {
	Serving
	transfers chan struct{}

	mu  sync.Mutex
	per map[string]int // transfers by address
}

func newShelf(s Serving) *shelf {
	return &shelf{Serving: s, transfers: make(chan struct{}, maxTransfers), per: map[string]int{}}
}

// files is the prefix of the URL paths for files.
const files = "/sha256/"

// ServeHTTP serves the listed files to clients with the token.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) != 1 {
		http.Error(w, "the token is wrong", http.StatusUnauthorized)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, files)
	if r.Method != http.MethodGet || !ok || !slices.Contains(s.Files, name) {
		http.NotFound(w, r)
		return
	}
	free, ok := s.enter(r.RemoteAddr)
	if !ok {
		http.Error(w, "too many transfers", http.StatusServiceUnavailable)
		return
	}
	defer free()
	f, size, err := openRegular(filepath.Join(s.Folder, name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(&hurried{ResponseWriter: w, c: http.NewResponseController(w), latest: time.Now().Add(headerTime + writeTime + time.Duration(size/slowest)*time.Second)},
		r, "", time.Time{}, f)
}

// enter counts a transfer to a client. It returns a function that ends the count, or false if the client or the machine has too many transfers.
func (s *shelf) enter(remote string) (free func(), ok bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.per[host] >= maxPerMachine {
		return nil, false
	}
	select {
	case s.transfers <- struct{}{}:
	default:
		return nil, false
	}
	s.per[host]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.per[host]--; s.per[host] == 0 {
			delete(s.per, host)
		}
		<-s.transfers
	}, true
}

// openRegular opens a regular file and returns its size. It returns an error for links and devices.
func openRegular(name string) (*os.File, int64, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// hurried is a ResponseWriter whose writes fail if the other machine accepts no data, or accepts data too slowly.
type hurried struct {
	http.ResponseWriter
	c      *http.ResponseController
	latest time.Time
}

func (h *hurried) Write(b []byte) (int, error) {
	until := time.Now().Add(writeTime)
	if until.After(h.latest) {
		until = h.latest
	}
	if err := h.c.SetWriteDeadline(until); err != nil {
		return 0, err
	}
	return h.ResponseWriter.Write(b)
}
