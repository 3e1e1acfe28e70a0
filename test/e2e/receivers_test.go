package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// message is a mail, or a message to a webhook. If a message is sent again, it has the same ID.
type message struct{ ID, To, Subject, Text string }

// mailbox holds the messages that a receiver has got, each of them once.
type mailbox struct {
	mu  sync.Mutex
	all []message
}

func (b *mailbox) add(m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, have := range b.all {
		if have.ID == m.ID && have.To == m.To {
			return
		}
	}
	b.all = append(b.all, m)
}

// of returns the messages to an address whose subject contains a text.
func (b *mailbox) of(to, subject string) (out []message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if m.To == to && strings.Contains(m.Subject, subject) {
			out = append(out, m)
		}
	}
	return out
}

// These are the user name and password at the mail server.
const (
	mailUser  = "pai"
	mailLogin = "e2e-Mail-Login-5120"
)

// mailServer is a mail server on this machine that requires STARTTLS and a login. It doesn't listen before start is called.
type mailServer struct {
	mailbox
	host string
	port int
	ca   string // PEM
	tls  *tls.Config
}

// newMailServer reserves a port at an address, without listening on it.
func newMailServer(t testing.TB, host string) *mailServer {
	t.Helper()
	s := &mailServer{host: host}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(host)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	require.NoError(t, err)
	s.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	l := listen(t, host, 0)
	s.port = l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	return s
}

func listen(t testing.TB, host string, port int) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	require.NoError(t, err)
	return l
}

// start accepts mails until the test ends.
func (s *mailServer) start(t testing.TB) {
	t.Helper()
	l := listen(t, s.host, s.port)
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: s}, nil }))
	server.Domain, server.TLSConfig = s.host, s.tls
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
}

type mailSession struct {
	server *mailServer
	in     bool
	to     []string
}

func (*mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (m *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != mailUser || password != mailLogin {
			return smtp.ErrAuthFailed
		}
		m.in = true
		return nil
	}), nil
}

func (m *mailSession) Mail(string, *smtp.MailOptions) error {
	if !m.in {
		return smtp.ErrAuthRequired
	}
	m.to = nil
	return nil
}

func (m *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.to = append(m.to, to)
	return nil
}

func (m *mailSession) Data(r io.Reader) error {
	letter, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body := letter.Body
	if strings.EqualFold(letter.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(letter.Header.Get("Subject"))
	if err != nil {
		return err
	}
	for _, to := range m.to {
		m.server.add(message{ID: letter.Header.Get("Message-ID"), To: to, Subject: subject, Text: strings.ReplaceAll(string(text), "\r\n", "\n")})
	}
	return nil
}

func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// webhook is a server on this machine that receives messages of generic webhooks.
type webhook struct {
	mailbox
	url string
}

// newWebhook starts a webhook. It doesn't use TLS, because the handler trusts only the CAs in its image, which are public CAs.
func newWebhook(t testing.TB, host string) *webhook {
	t.Helper()
	h := &webhook{}
	const path = "/hooks/e2e-Secret-Address-8846"
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if r.Method != http.MethodPost || r.URL.Path != path || json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.add(m)
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = listen(t, host, 0)
	server.Start()
	t.Cleanup(server.Close)
	h.url = server.URL + path
	return h
}
