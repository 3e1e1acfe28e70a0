package send

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"mime"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
)

// server is a real mail server that supports TLS and logins.
type server struct {
	mu       sync.Mutex
	received []string // raw
	to       []string
	refuse   error // the answer to RCPT
	logins   bool
	port     int
	ca       string
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &session{s: s, in: !s.logins}, nil
}

type session struct {
	s  *server
	in bool
	to string
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (m *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "pai" || password != "S3CRET" {
			return smtp.ErrAuthFailed
		}
		m.in = true
		return nil
	}), nil
}

func (m *session) Mail(string, *smtp.MailOptions) error {
	if !m.in {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (m *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.to = to
	return m.s.refuse
}

func (m *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.received, m.s.to = append(m.s.received, string(text)), append(m.s.to, m.to)
	return nil
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

// serve starts the server. If implicit is true, it uses TLS from the start. If encrypted is true, it offers STARTTLS.
func (s *server) serve(t *testing.T, encrypted, implicit bool) *server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	s.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port = l.Addr().(*net.TCPAddr).Port
	if implicit {
		l = tls.NewListener(l, config)
	}
	srv := smtp.NewServer(s)
	srv.Domain = "localhost"
	if encrypted && !implicit {
		srv.TLSConfig = config
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return s
}

func (s *server) config() *notify.SMTP {
	c := &notify.SMTP{Host: "localhost", Port: s.port, TLS: notify.TLSStart, CA: s.ca, From: "pai@example.org"}
	if s.logins {
		c.Username, c.Password = "pai", "S3CRET"
	}
	return c
}

func sendTo(t *testing.T, c *notify.SMTP, address string, messages ...*notify.Message) error {
	t.Helper()
	s, err := NewMail(c).Open(t.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	for _, m := range messages {
		err = errors.Join(err, s.Send(t.Context(), address, m))
	}
	return err
}

// Mails are sent over STARTTLS and over implicit TLS, after a login, and several mails over one connection.
func TestMailsArrive(t *testing.T) {
	for name, implicit := range map[string]bool{"starttls": false, "implicit": true} {
		t.Run(name, func(t *testing.T) {
			s := (&server{logins: true}).serve(t, true, implicit)
			c := s.config()
			if implicit {
				c.TLS = notify.TLSImplicit
			}
			require.NoError(t, sendTo(t, c, "ann@example.org", hello, hello))
			require.Equal(t, []string{"ann@example.org", "ann@example.org"}, s.to)
			m, err := mail.ReadMessage(strings.NewReader(s.received[0]))
			require.NoError(t, err)
			require.Equal(t, "<"+hello.ID+"@example.org>", m.Header.Get("Message-ID"), "the same when it is sent again")
			require.Equal(t, "auto-generated", m.Header.Get("Auto-Submitted"))
			require.Contains(t, m.Header.Get("Content-Type"), "text/plain")
		})
	}
}

// The name of a job, or a reason, can't add a header, a receiver, a second mail or markup.
func TestNoHeadersAreInjected(t *testing.T) {
	s := (&server{}).serve(t, true, false)
	evil := "x\r\nBcc: eve@example.org\r\n\r\n<script>alert(1)</script>\r\n.\r\nMAIL FROM:<eve@example.org>\r\n"
	require.NoError(t, sendTo(t, s.config(), "ann@example.org", &notify.Message{ID: "1", Subject: "job " + evil, Text: "Reason: " + evil}))
	require.Equal(t, []string{"ann@example.org"}, s.to)
	m, err := mail.ReadMessage(strings.NewReader(s.received[0]))
	require.NoError(t, err)
	require.Empty(t, m.Header.Get("Bcc"))
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	require.NoError(t, err)
	require.Equal(t, "job x Bcc: eve@example.org <script>alert(1)</script> . MAIL FROM:<eve@example.org>", subject)
	for _, address := range []string{"ann@example.org\r\nBcc: eve@example.org", "ann@example.org, eve@example.org", "", "x"} {
		require.ErrorIs(t, sendTo(t, s.config(), address, hello), notify.ErrRefused, "%q", address)
	}
	require.Len(t, s.received, 1)
}

// Without encryption, with an unknown certificate or with a wrong password, no mail is sent. The errors don't contain the password.
func TestMailIsEncrypted(t *testing.T) {
	plain := (&server{logins: true}).serve(t, false, false)
	err := sendTo(t, plain.config(), "ann@example.org", hello)
	require.ErrorContains(t, err, "STARTTLS")
	s := (&server{logins: true}).serve(t, true, false)
	c := s.config()
	c.CA = ""
	require.ErrorContains(t, sendTo(t, c, "ann@example.org", hello), "certificate")
	c = s.config()
	c.Password = "WR0NG"
	err = sendTo(t, c, "ann@example.org", hello)
	require.ErrorContains(t, err, "Authentication failed")
	require.NotContains(t, err.Error(), "WR0NG")
	require.Empty(t, append(s.received, plain.received...))
}

// The error for a rejected receiver differs from the error for a broken connection.
func TestRefusedReceivers(t *testing.T) {
	for _, refuse := range []error{&smtp.SMTPError{Code: 550, Message: "no such user"}, &smtp.SMTPError{Code: 451, Message: "later"}} {
		s := (&server{refuse: refuse}).serve(t, true, false)
		err := sendTo(t, s.config(), "ann@example.org", hello, hello)
		require.ErrorIs(t, err, notify.ErrRefused)
		require.Equal(t, 2, strings.Count(err.Error(), "refused the message"))
	}
}

// A server that accepts connections and never responds takes only a limited time. The end of a context ends the attempt.
func TestASilentMailServer(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	m := NewMail(&notify.SMTP{Host: "localhost", TLS: notify.TLSStart, From: "pai@example.org"})
	m.c.Port, err = strconv.Atoi(port)
	require.NoError(t, err)
	m.timeout = 50 * time.Millisecond
	_, err = m.Open(t.Context())
	require.Error(t, err)
	m.timeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := l.Accept(); err == nil { // the first attempt's
			conn.Close()
		}
		if conn, err := l.Accept(); err == nil {
			defer conn.Close()
			cancel()
			_, _ = conn.Read(make([]byte, 1))
		}
	}()
	_, err = m.Open(ctx)
	require.Error(t, err)
}
