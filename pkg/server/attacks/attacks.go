// Package attacks has attempts to access another person's jobs, secrets, logs, shells, tokens and pages. Tests try all attempts on a server. In: a
// server over TLS, and two of its users. Out: an error for each attempt that got data that it shouldn't, or an unexpected response.
package attacks

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// World is a server, an owner with a job, and a thief who must not learn that the job exists.
type World struct {
	Address string // HOST:PORT
	Pages   string // HOST:PORT of the pages of other services
	TLS     *tls.Config

	// Owner has Job, whose Framework is Object; Own is a job of the Thief.
	Owner, Job, Object string
	Thief, Own         string
	// Reader sees the owner's jobs and may not change them; "" if the world has no reader.
	Reader string

	// OwnerToken, ThiefToken and ReaderToken are tokens of people who may sign in; the other tokens are invalid tokens of the owner. Empty tokens
	// aren't tried.
	OwnerToken, ThiefToken, ReaderToken string
	Expired, Revoked, Disabled, Refresh string
	// TokenID is the id of a token of the owner.
	TokenID string
	// Marks are strings that only the owner may see.
	Marks []string
}

// Attack is one attempt: the bytes that are sent, and the statuses of a rejection. An attempt may have several requests.
type Attack struct {
	Name string
	Raw  string
	Want []int
	// Pages sends it to World.Pages.
	Pages bool
	// Reflected are strings that no response may have, in addition to the world's marks.
	Reflected []string
}

// All returns all attempts over HTTP/1.1. Each name is unique.
func All(w *World) []Attack {
	return slices.Concat(tokens(w), names(w), verbs(w), people(w), headers(w), framing(w), pages(w))
}

// answerTime bounds an attempt: a server that waits for more bytes has rejected the attempt, too.
const answerTime = 10 * time.Second

// Try makes an attempt. It returns an error if the attempt succeeded, or if the response has an unexpected status.
func Try(ctx context.Context, w *World, a *Attack) error {
	said, err := talk(ctx, w, a)
	if err != nil {
		return err
	}
	method, _, _ := strings.Cut(a.Raw, " ")
	statuses, text := read(said, method)
	if len(statuses) == 0 {
		statuses = []int{0} // the server closed the connection
	}
	for _, s := range statuses {
		if !slices.Contains(a.Want, s) {
			return fmt.Errorf("the answers have the statuses %v, and one of them is not in %v: %.400s", statuses, a.Want, text)
		}
	}
	return w.kept(text, a.Reflected)
}

// kept returns an error if a response has strings that it shouldn't.
func (w *World) kept(text string, more []string) error {
	for _, mark := range append(slices.Clone(w.Marks), more...) {
		if mark != "" && strings.Contains(text, mark) {
			return fmt.Errorf("the answer has %q", mark)
		}
	}
	return nil
}

// talk sends bytes unchanged, and returns everything that it receives until the connection ends.
func talk(ctx context.Context, w *World, a *Attack) ([]byte, error) {
	to := w.Address
	if a.Pages {
		to = w.Pages
	}
	settings := w.TLS.Clone()
	settings.NextProtos = []string{"http/1.1"}
	c, err := (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(answerTime))
	_, _ = io.WriteString(c, a.Raw) // the server may already have closed the connection
	if strings.Contains(a.Raw, upgrading) {
		return first(c), nil
	}
	said, _ := io.ReadAll(c) // the bytes received before the connection was lost
	return said, nil
}

// upgrading is in requests that don't end the connection themselves.
const upgrading = "Connection: Upgrade\r\n"

// first reads one response.
func first(c io.Reader) []byte {
	said := &bytes.Buffer{}
	r, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, said)), nil)
	if err == nil && r.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, r.Body) // said already has it
		_ = r.Body.Close()
	}
	return said.Bytes()
}

// read parses responses, and returns them as text with their bodies unpacked.
func read(said []byte, method string) (statuses []int, text string) {
	in, out := bufio.NewReader(bytes.NewReader(said)), &strings.Builder{}
	for {
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			out.Write(said)
			return statuses, out.String()
		}
		statuses = append(statuses, r.StatusCode)
		body, _ := io.ReadAll(r.Body) // a partial body counts, too
		_ = r.Body.Close()
		out.Write(body)
		method = http.MethodGet
	}
}

// ask returns a request without a body. headers are names and values.
func (w *World) ask(method, target, token string, headers ...string) string {
	return w.send(method, target, token, "", headers...)
}

// as returns an Authorization header.
func as(token string) string {
	if token == "" {
		return ""
	}
	return "Authorization: Bearer " + token + "\r\n"
}

// send returns a request. The request closes the connection, unless it upgrades it.
func (w *World) send(method, target, token, body string, headers ...string) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n%s", method, target, w.host(), as(token))
	ends := true
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(b, "%s: %s\r\n", headers[i], headers[i+1])
		ends = ends && !strings.EqualFold(headers[i], "Upgrade")
	}
	if ends {
		b.WriteString("Connection: close\r\n")
	} else {
		b.WriteString(upgrading)
	}
	if body != "" {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	return b.String() + "\r\n" + body
}

func (w *World) host() string {
	if host, port, err := net.SplitHostPort(w.Address); err == nil && port == "443" {
		return host
	}
	return w.Address
}

// Names of the server, as an attacker sees them.
const (
	cookies = "__Host-Http-pai-"
	cookie  = cookies + "session="
	ticket  = "pai-ticket."
)

// Statuses of rejected requests.
var (
	unknown   = []int{http.StatusUnauthorized}
	hidden    = []int{http.StatusNotFound}
	forbidden = []int{http.StatusForbidden}
	malformed = []int{http.StatusBadRequest}
	nowhere   = []int{http.StatusBadRequest, http.StatusNotFound}
)

// detail and place return the path of the owner's job in OpenPAI's API and in ours.
func (w *World) detail() string { return "/api/v2/jobs/" + w.Owner + "~" + w.Job }
func (w *World) place() string  { return "/api/v3/jobs/" + w.Owner + "/" + w.Job }
