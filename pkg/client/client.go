// Package client sends requests to the platform's server over HTTPS, for a user who has signed in.
// In: the server's address, the CAs for its certificate, a token. Out: responses of /api/v3, and the functions that "paictl job" needs.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/secret"
)

const (
	// dialTime limits how long connecting may take. answerTime limits how long the server may take to begin a response, because deleting a job
	// makes the server wait up to ten minutes for the job's end.
	dialTime   = 10 * time.Second
	answerTime = 11 * time.Minute
	// patience is how long requests are retried while the server restarts. pause is the time before the first retry.
	patience   = 30 * time.Second
	pause      = 500 * time.Millisecond
	longest    = 5 * time.Second
	tellAfter  = 2 * time.Second
	maxAnswer  = 256 << 20 // bytes
	maxRefusal = 1 << 20
)

// Tokens provides tokens for the server. It is safe for concurrent use.
type Tokens interface {
	// Access returns a token that is expected to be valid for at least a minute.
	Access(ctx context.Context) (secret.String, error)
	// Renewed returns a token in place of a token that the server rejected. The error, if any, says what to do.
	Renewed(ctx context.Context, refused secret.String) (secret.String, error)
}

// Fixed is a token that is never renewed, such as the token of an application.
type Fixed secret.String

// Access returns the fixed token.
func (f Fixed) Access(context.Context) (secret.String, error) { return secret.String(f), nil }

// Renewed always returns an error, because a fixed token can't be renewed.
func (Fixed) Renewed(context.Context, secret.String) (secret.String, error) {
	return "", hint.Errorf("make another: paictl token create, or sign in: paictl login", "the server rejects the token in PAICTL_TOKEN: it has expired or was revoked")
}

// Options specify the server and the tokens of its user.
type Options struct {
	// URL is the server's address, in the form https://HOST[:PORT].
	URL string
	// CA is the PEM of the only CAs that may sign the server's certificate. If it is empty, the system's CAs may sign the certificate.
	CA []byte
	// Tokens provides the user's tokens. It is nil for requests before the user signs in.
	Tokens Tokens
	// Version is the version of paictl.
	Version string
	// Note is called when a request is retried; it may be nil.
	Note func(text string)
	// Inside is a server in this process, which needs neither URL nor Tokens. It is nil for all other servers.
	Inside *Inside
}

// Inside is a server that runs in this process.
type Inside struct {
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Header is added to each request.
	Header http.Header
	// Exec and Forward connect to a task of a job. They are functions because client-go doesn't use Dial for such connections.
	Exec    func(ctx context.Context, t *job.Target, cmd stream.Command) error
	Forward func(ctx context.Context, t *job.Target, port int, l net.Listener, problem func(error)) error
}

// Server is a client that sends requests to one server.
type Server struct {
	base    *url.URL
	http    *http.Client
	tokens  Tokens
	version string
	ca      []byte
	note    func(string)
	// patience is how long requests are retried while the server restarts.
	patience time.Duration
	inside   *Inside
}

// ParseURL parses the address of a server and returns only its scheme, which is https, and its host. A text without a scheme gets https; all
// other schemes are errors.
func ParseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	remedy := "write https://HOST, as \"paictl service start -n rest-server\" printed it"
	switch {
	case err != nil:
		return nil, hint.Errorf(remedy, "%s is not the address of a server", secret.Address(text))
	case u.Scheme != "https":
		return nil, hint.Errorf(remedy, "%s: a server is only reached over https", secret.Address(text))
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, hint.Errorf(remedy, "%s is not the address of a server", secret.Address(text))
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

// New returns a client for the server in o. It doesn't send a request yet.
func New(o Options) (*Server, error) {
	if o.Inside != nil {
		return inside(o), nil
	}
	base, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, hint.Errorf("give the PEM of the authority: --ca FILE", "the authority of %s is not a certificate", base.Host)
		}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig: config, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
	}
	s := &Server{base: base, tokens: o.Tokens, version: o.Version, ca: o.CA, note: o.Note, patience: patience,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if s.note == nil {
		s.note = func(string) {}
	}
	return s, nil
}

// inside returns a client for a server in this process. The client doesn't retry requests, because this server doesn't restart.
func inside(o Options) *Server {
	s := &Server{base: &url.URL{Scheme: "http", Host: "paictl"}, version: o.Version, inside: o.Inside, note: func(string) {},
		http: &http.Client{Transport: &http.Transport{DialContext: o.Inside.Dial}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return s
}

// Host returns the host in the server's address, with the port if there is one.
func (s *Server) Host() string { return s.base.Host }

// question is one request to the server.
type question struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	// content, if it isn't nil, is sent in place of body.
	content io.Reader
	size    int64 // of content, in bytes
	// open marks a request without a token. again marks a request that may be repeated if there was no response, because the repetition does no
	// harm.
	open, again bool
	// once marks a request that is never repeated.
	once bool
}

// get returns a GET request, which may be repeated because it changes nothing.
func get(path string, query url.Values) question {
	return question{method: http.MethodGet, path: path, query: query, again: true}
}

// post returns a POST request whose body is in as JSON, or {} if in is nil.
func post(path string, query url.Values, in any) (question, error) {
	body := []byte("{}")
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return question{}, err
		}
	}
	return question{method: http.MethodPost, path: path, query: query, body: body, header: http.Header{"Content-Type": {"application/json"}}}, nil
}

// ask sends a request, and decodes the JSON response into out unless out is nil.
func (s *Server) ask(ctx context.Context, q question, out any) error {
	resp, err := s.do(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", s.base.Host, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return hint.Errorf("check that it is the address of the platform's server", "%s answers with something else than the platform's server does: %w", s.base.Host, err)
	}
	return nil
}

// do sends a request with the user's token, or without one if the request is open. If the server rejects the token, do renews it and sends the
// request once more. A status that means failure is returned as an *Error.
func (s *Server) do(ctx context.Context, q question) (*http.Response, error) {
	token := secret.String("")
	if !q.open && s.inside == nil {
		if s.tokens == nil {
			return nil, errNotSignedIn
		}
		var err error
		if token, err = s.tokens.Access(ctx); err != nil {
			return nil, err
		}
	}
	resp, err := s.patient(ctx, q, token)
	refused, ok := errors.AsType[*Error](err)
	if q.open || s.inside != nil || !ok || refused.Status != http.StatusUnauthorized {
		return resp, err
	}
	renewed, renewErr := s.tokens.Renewed(ctx, token)
	if renewErr != nil {
		return nil, renewErr
	}
	return s.patient(ctx, q, renewed)
}

// retryNote returns a note with an error and the duration of the retries. It removes the error's final period, because the server's messages are
// sentences.
func retryNote(err error, patience time.Duration) string {
	return fmt.Sprintf("%s; retrying for %s", strings.TrimSuffix(err.Error(), "."), job.Duration(patience))
}

// patient sends a request, and retries it while the server restarts. It calls note once if this takes longer.
func (s *Server) patient(ctx context.Context, q question, token secret.String) (*http.Response, error) {
	began, wait, told := time.Now(), pause, false
	for {
		resp, err := s.send(ctx, q, token)
		after, passes := s.passes(q, err)
		if !passes || ctx.Err() != nil || time.Since(began) >= s.patience {
			return resp, err
		}
		if time.Since(began) >= tellAfter && !told {
			told = true
			s.note(retryNote(err, s.patience))
		}
		timer := time.NewTimer(max(wait, after))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
		wait = min(2*wait, longest)
	}
}

// passes reports whether to retry a failed request, and how long to wait at least. It retries if the server seems to be restarting and either the
// request never reached the server or its repetition does no harm.
func (s *Server) passes(q question, err error) (after time.Duration, yes bool) {
	if err == nil || q.once {
		return 0, false
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.after, q.again && refused.after > 0 && refused.after <= s.patience
	}
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "dial" {
		_, unknown := errors.AsType[*net.DNSError](err)
		return 0, !unknown
	}
	_, offline := errors.AsType[net.Error](err)
	return 0, q.again && (offline || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// send sends a request once. A status that means failure is returned as an *Error.
func (s *Server) send(ctx context.Context, q question, token secret.String) (*http.Response, error) {
	to := *s.base
	path, err := url.PathUnescape(q.path)
	if err != nil {
		return nil, err
	}
	to.Path, to.RawPath, to.RawQuery = path, q.path, q.query.Encode()
	req, err := http.NewRequestWithContext(ctx, q.method, to.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if q.content != nil {
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(q.content), nil, q.size
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "paictl/"+s.version)
	req.Header.Set("Accept", "application/json")
	if s.inside != nil {
		for name, values := range s.inside.Header {
			req.Header[name] = values
		}
	}
	if token.IsSet() {
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	e := readError(resp.StatusCode, body)
	e.Host = s.base.Host
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		e.after = time.Duration(max(seconds, 1)) * time.Second
	}
	return nil, e
}
