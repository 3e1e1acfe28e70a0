// Package send implements the channels of notices: mail by SMTP, and webhooks.
// In: the configuration, messages. Out: connections to a mail server and to chats.
//
// Errors and logs never contain passwords or the addresses of webhooks, which are secrets.
package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
)

const (
	// timeout limits a request to a webhook, and the connection to a mail server.
	timeout = 15 * time.Second
	// mailTimeout limits the greeting and login of a mail server, and the sending of each mail. It is long because some servers delay responses to
	// fight spam.
	mailTimeout = 2 * time.Minute
	// closing is the SMTP code with which a server announces that it closes the connection.
	closing = 421
)

// Mail is the channel that sends mail through one server.
type Mail struct {
	c       notify.SMTP
	timeout time.Duration
}

// NewMail returns a Mail for a valid configuration.
func NewMail(c *notify.SMTP) *Mail { return &Mail{c: *c, timeout: mailTimeout} }

func (m *Mail) tls() (*tls.Config, error) {
	out := &tls.Config{ServerName: m.c.Host, MinVersion: tls.VersionTLS12}
	if m.c.CA != "" {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM([]byte(m.c.CA)) {
			return nil, errors.New("smtp.ca has no certificate")
		}
	}
	return out, nil
}

// Open connects to the server, encrypts the connection, and logs in.
func (m *Mail) Open(ctx context.Context) (notify.Session, error) {
	config, err := m.tls()
	if err != nil {
		return nil, err
	}
	s := &mailSession{from: m.c.From}
	options := []mail.Option{
		mail.WithPort(m.c.Port), mail.WithTimeout(m.timeout), mail.WithTLSConfig(config), mail.WithTLSPolicy(mail.TLSMandatory),
		mail.WithHELO(domain(m.c.From)), mail.WithDialContextFunc(m.dial(s, config)),
	}
	switch m.c.TLS {
	case notify.TLSImplicit:
		options = append(options, mail.WithSSL())
	case notify.TLSNone:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	}
	if m.c.Username != "" {
		options = append(options, mail.WithSMTPAuthCustom(&login{user: m.c.Username, password: m.c.Password.Reveal(), host: m.c.Host}))
	}
	if s.client, err = mail.NewClient(m.c.Host, options...); err != nil {
		return nil, fmt.Errorf("the mail server %s: %w", m.c.Host, err)
	}
	defer context.AfterFunc(ctx, s.drop)()
	if err := s.client.DialWithContext(ctx); err != nil {
		s.drop()
		return nil, fmt.Errorf("connect to the mail server %s: %w", net.JoinHostPort(m.c.Host, strconv.Itoa(m.c.Port)), plain(err))
	}
	return s, nil
}

// dial returns a function that connects with a deadline. Without a deadline, a server that sends no greeting would block forever.
func (m *Mail) dial(s *mailSession, config *tls.Config) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.raw = conn
		s.mu.Unlock()
		if err := conn.SetDeadline(time.Now().Add(m.timeout)); err != nil {
			return nil, err
		}
		if m.c.TLS != notify.TLSImplicit {
			return conn, nil
		}
		secured := tls.Client(conn, config)
		return secured, secured.HandshakeContext(ctx)
	}
}

type mailSession struct {
	client *mail.Client
	from   string

	mu  sync.Mutex
	raw net.Conn
}

// Send sends one mail.
func (s *mailSession) Send(ctx context.Context, address string, m *notify.Message) error {
	out := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := out.From(s.from); err != nil {
		return fmt.Errorf("the sender: %w", err)
	}
	if err := out.To(address); err != nil {
		return fmt.Errorf("%w: the address is not valid", notify.ErrRefused)
	}
	out.Subject(policy.OneLine(m.Subject, 200))
	out.SetMessageIDWithValue(m.ID + "@" + domain(s.from))
	out.SetDateWithValue(time.Now())
	out.SetGenHeader("Auto-Submitted", "auto-generated") // so that no absence notice answers it
	out.SetBodyString(mail.TypeTextPlain, m.Text)
	stop := context.AfterFunc(ctx, s.drop)
	defer stop()
	err := s.client.Send(out)
	var failed *mail.SendError
	switch {
	case err == nil, out.IsDelivered():
		return nil
	case !errors.As(err, &failed) || failed.Reason == mail.ErrConnCheck || failed.ErrorCode() == closing:
		return plain(err)
	case failed.Reason == mail.ErrSMTPRcptTo && failed.ErrorCode() >= 500:
		return fmt.Errorf("%w: %w", notify.ErrAddress, plain(err))
	case failed.ErrorCode() != 0:
		return fmt.Errorf("%w: %w", notify.ErrRefused, plain(err))
	case failed.Reason == mail.ErrSMTPDataClose:
		return fmt.Errorf("%w: %w", notify.ErrUnknown, plain(err))
	}
	return plain(err)
}

func (s *mailSession) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw != nil {
		_ = s.raw.Close()
	}
}

// Close ends the session with the server and closes the connection.
func (s *mailSession) Close() {
	_ = s.client.Close()
	s.drop()
}

func domain(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// plain returns an error with the server's text, shortened to one line.
func plain(err error) error { return errors.New(policy.OneLine(err.Error(), 300)) }

// login logs in with the first known mechanism that the server offers. It sends the password only over an encrypted connection.
type login struct {
	user, password, host string
	chosen               smtp.Auth
}

var errNoLogin = errors.New("the server offers none of the ways to log in that are known: PLAIN, LOGIN, SCRAM-SHA-256, CRAM-MD5")

// Start chooses a mechanism and begins the login.
func (l *login) Start(server *smtp.ServerInfo) (proto string, toServer []byte, err error) {
	if !server.TLS {
		return "", nil, errors.New("the connection isn't encrypted, and the password isn't sent without")
	}
	switch offers := func(name string) bool { return slices.Contains(server.Auth, name) }; {
	case offers("PLAIN"):
		l.chosen = smtp.PlainAuth("", l.user, l.password, l.host, false)
	case offers("LOGIN"):
		l.chosen = smtp.LoginAuth(l.user, l.password, l.host, false)
	case offers("SCRAM-SHA-256"):
		l.chosen = smtp.ScramSHA256Auth(l.user, l.password)
	case offers("CRAM-MD5"):
		l.chosen = smtp.CRAMMD5Auth(l.user, l.password)
	default:
		return "", nil, errNoLogin
	}
	return l.chosen.Start(server)
}

// Next responds to a challenge of the server.
func (l *login) Next(fromServer []byte, more bool) ([]byte, error) {
	return l.chosen.Next(fromServer, more)
}
