package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// errNotSignedIn is returned for requests that need a token if the user isn't signed in.
var errNotSignedIn = hint.Errorf("sign in: paictl login https://HOST", "you are not signed in")

// Error is a response whose status means failure.
type Error struct {
	Body   api.Error
	Status int
	Host   string

	after time.Duration // when to retry; 0 if the server doesn't say
}

// Error returns the server's message.
func (e *Error) Error() string { return e.Body.Message }

// ExitCode returns 1, the exit code for failures.
func (e *Error) ExitCode() int { return 1 }

// Error codes of the server that commands handle differently.
const (
	codeNoJob    = "NoJobError"
	codeNoAPI    = "NoApiError"
	codeProtocol = "InvalidProtocolError"
)

func readError(status int, body []byte) *Error {
	e := &Error{Status: status}
	if json.Unmarshal(body, &e.Body) == nil && e.Body.Code != "" && e.Body.Message != "" {
		return e
	}
	e.Body = api.Error{Message: fmt.Sprintf("the server answers with status %d (%s)", status, http.StatusText(status))}
	return e
}

// explained adds a remedy to an error that the server returned. It returns other errors unchanged.
func explained(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || hint.Of(err) != "" {
		return err
	}
	switch {
	case e.Body.Code == codeNoAPI || e.Status == http.StatusMethodNotAllowed:
		return hint.Errorf("ask an administrator to update it, or use the cluster's kubeconfig: --kubeconfig FILE", "the server %s doesn't offer this: it is older than this paictl", e.Host)
	case e.Body.Remedy != "":
		return hint.Wrap(err, e.Body.Remedy)
	case e.Status == http.StatusForbidden:
		return hint.Wrap(err, "see what you may do with: paictl whoami; an administrator grants more")
	case e.Status >= http.StatusInternalServerError && e.Body.Request != "":
		return hint.Wrap(err, "try again; if it stays, tell an administrator the request's name: "+e.Body.Request)
	}
	return err
}

// Absent returns the error for a command that the server doesn't support yet.
func Absent(what string) error {
	return hint.Errorf("use the cluster's kubeconfig: --kubeconfig FILE", "%s is not available yet to those who signed in", what)
}

// unreachable returns an error that explains why the server can't be reached.
func (s *Server) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // its text repeats the URL
	}
	if s.inside != nil {
		return err
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	if _, fixed := s.tokens.(Fixed); fixed && unknown { // a program doesn't sign in
		return hint.Wrap(unreachable(s.base.Host, err), "set PAICTL_CA to a file with the certificate of the server's authority")
	}
	return unreachable(s.base.Host, err)
}

func unreachable(host string, err error) error {
	wrapped := fmt.Errorf("ask %s: %w", host, err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	record, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case plain && record.Conn != nil:
		return hint.Wrap(wrapped, "it speaks no https: check that it is the address of the platform's server")
	case unknown:
		return hint.Wrap(wrapped, "if its certificate was changed on purpose, sign in again: paictl login https://"+host+" --fingerprint SHA256; \"paictl service start -n rest-server\" prints it")
	case name:
		return hint.Wrap(wrapped, "use a name or address that the certificate is for, or add this one to rest-server.names in services-configuration.yaml")
	case dns:
		return hint.Wrap(wrapped, "check the name")
	}
	return hint.Wrap(wrapped, "check that it runs: paictl service status -n rest-server")
}
