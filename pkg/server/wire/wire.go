// Package wire reads and writes HTTP messages. Their bodies, queries, responses and errors have the formats that clients of OpenPAI send and expect.
// In: requests, values. Out: decoded values, and responses.
package wire

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Error is the response to a failed request.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Remedy tells the user how to fix the error.
	Remedy string `json:"remedy,omitempty"`
	// Findings lists the errors in a job file.
	Findings strictyaml.Findings `json:"findings,omitempty"`
	// Request is the id of the request in the server's log.
	Request string `json:"request,omitempty"`
	// RetryAfter is the time after which the client should retry after a temporary error.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// OpenPAI's error codes of handlers and of the router.
const (
	CodeParameters   = "InvalidParametersError"
	CodeNoAPI        = "NoApiError"
	CodeUnauthorized = "UnauthorizedUserError"
	CodeForbidden    = "ForbiddenUserError"
	CodeUnavailable  = "UnavailableError"
	CodeUnknown      = "UnknownError"
	CodeTooMany      = "TooManyRequestsError"
	CodeTooLarge     = "TooLargeError"
	CodeMethod       = "MethodNotAllowedError"
	CodeKey          = "IdempotencyKeyError"
)

// Bad returns the error for a malformed request.
func Bad(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeParameters, Message: message}
}

const (
	// gzipFrom is the minimum size of a compressed response, in bytes.
	gzipFrom = 1 << 10
	// shown is the maximum length of a client's name in an error message, in bytes.
	shown = 64
)

// Shown shortens a name from a client for an error message. Error messages contain names, but never values.
func Shown(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > shown {
		return strings.ToValidUTF8(s[:shown], "") + "…"
	}
	return s
}

// JSON responds with a value as compact JSON, as OpenPAI does.
func JSON(w http.ResponseWriter, r *http.Request, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	Bytes(w, r, status, mediaJSON, body)
	return nil
}

const mediaJSON = "application/json; charset=utf-8"

// Bytes responds with a complete body. If the client already has the same body, it responds with the status 304. It compresses long bodies if the
// client accepts compression.
func Bytes(w http.ResponseWriter, r *http.Request, status int, media string, body []byte) {
	(&Packed{data: body, length: len(body)}).answer(w, r, status, media)
}

func (p *Packed) answer(w http.ResponseWriter, r *http.Request, status int, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Add("Vary", "Accept-Encoding")
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case h.Get("Cache-Control") != "":
	case read && status == http.StatusOK:
		h.Set("Cache-Control", "private, no-cache")
		tag := p.tag
		if tag == "" {
			tag = tagOf(p.data)
		}
		h.Set("ETag", tag)
		if has(r.Header.Values("If-None-Match"), tag) {
			h.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	default:
		h.Set("Cache-Control", "no-store")
	}
	zips := p.length >= gzipFrom && AcceptsGzip(r)
	if zips {
		h.Set("Content-Encoding", "gzip")
	} else {
		h.Set("Content-Length", strconv.Itoa(p.length))
	}
	w.WriteHeader(status)
	switch { // a disconnected client isn't an error
	case r.Method == http.MethodHead:
	case zips && p.zipped:
		_, _ = w.Write(p.data)
	case zips:
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a valid level
		_, _ = z.Write(p.data)
		_ = z.Close()
	default:
		_, _ = p.WriteTo(w)
	}
}

// Fail responds with an error.
func Fail(w http.ResponseWriter, r *http.Request, e *Error) {
	h := w.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="pai"`)
	}
	h.Set("Cache-Control", "no-store")
	out := *e
	out.Code = cmp.Or(out.Code, CodeUnknown)
	body, err := json.Marshal(&out)
	if err != nil {
		body = []byte(`{"code":"UnknownError","message":"the error can't be written"}`)
	}
	Bytes(w, r, e.Status, mediaJSON, body)
}

// has reports whether headers with lists of entity tags contain a tag. The comparison is weak.
func has(headers []string, tag string) bool {
	for _, line := range headers {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

// AcceptsGzip reports whether a client accepts responses that are compressed with gzip.
func AcceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(line, ",") {
			name, quality, _ := strings.Cut(one, ";")
			name, quality = strings.TrimSpace(name), strings.ReplaceAll(quality, " ", "")
			if (strings.EqualFold(name, "gzip") || name == "*") && strings.Trim(strings.TrimPrefix(quality, "q="), "0.") != "" || strings.EqualFold(name, "gzip") && quality == "" {
				return true
			}
		}
	}
	return false
}
