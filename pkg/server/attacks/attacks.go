// Package attacks attempts to access another person's jobs, secrets, logs, shells, tokens and pages. Tests make all attempts on a server. In: a
// server over TLS, and two of its users. Out: an error for each attempt that returned forbidden data or an unexpected response.
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

// World holds a server, an owner with a job, and a thief. The existence of the job is hidden from the thief.
type World struct {
	Address string // HOST:PORT
	Pages   string // HOST:PORT of the pages of other services
	TLS     *tls.Config

	// Owner owns the job Job. Object is the name of its Framework. Own is a job of the Thief.
	Owner, Job, Object string
	Thief, Own         string
	// Reader may read the owner's jobs, but not change them. It is "" if the world has no reader.
	Reader string

	// OwnerToken, ThiefToken and ReaderToken are tokens of people who may sign in. The other tokens are invalid tokens of the owner. Attempts without
	// a token are skipped.
	OwnerToken, ThiefToken, ReaderToken string
	Expired, Revoked, Disabled, Refresh string
	// TokenID is the id of one of the owner's tokens.
	TokenID string
	// Marks lists strings that only the owner may read.
	Marks []string
}

// Attack is one attempt, which may contain several requests. Raw holds the bytes to send. Want lists the statuses of a rejection.
type Attack struct {
	Name string
	Raw  string
	Want []int
	// Pages sends the attempt to World.Pages instead of World.Address.
	Pages bool
	// Reflected lists strings that no response may contain, in addition to the world's Marks.
	Reflected []string
}

// All returns all attempts over HTTP/1.1. Their names are unique.
func All(w *World) []Attack {
	return slices.Concat(tokens(w), names(w), verbs(w), people(w), headers(w), framing(w), pages(w))
}

// answerTime limits the duration of an attempt. A server that still waits for more bytes has rejected the attempt, too.
const answerTime = 10 * time.Second

// Try makes an attempt. It returns an error if the attempt succeeded, or if a response has an unexpected status.
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

// kept returns an error if a response contains one of the world's marks, or one of the strings in more.
func (w *World) kept(text string, more []string) error {
	for _, mark := range append(slices.Clone(w.Marks), more...) {
		if mark != "" && strings.Contains(text, mark) {
			return fmt.Errorf("the answer has %q", mark)
		}
	}
	return nil
}

// talk sends the bytes of an attempt unchanged, and returns all received bytes until the connection ends.
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

// upgrading is part of the requests after which the connection stays open.
const upgrading = "Connection: Upgrade\r\n"

func first(c io.Reader) []byte {
	said := &bytes.Buffer{}
	r, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, said)), nil)
	if err == nil && r.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, r.Body) // said already has it
		_ = r.Body.Close()
	}
	return said.Bytes()
}

// read parses responses. It returns their statuses, and their headers and decoded bodies as text.
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

// ask returns a request without a body. headers alternates between names and values.
func (w *World) ask(method, target, token string, headers ...string) string {
	return w.send(method, target, token, "", headers...)
}

// as returns the Authorization header with a token, or "" for an empty token.
func as(token string) string {
	if token == "" {
		return ""
	}
	return "Authorization: Bearer " + token + "\r\n"
}

// send returns a request with a body. The server closes the connection after the request, unless the request upgrades the connection.
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

// Names of the server that an attacker can observe.
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

// detail returns the path of the owner's job in OpenPAI's API. place returns its path in paictl's API.
func (w *World) detail() string { return "/api/v2/jobs/" + w.Owner + "~" + w.Job }
func (w *World) place() string  { return "/api/v3/jobs/" + w.Owner + "/" + w.Job }
