package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/node/logstore/agents"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// errUnavailable is wrapped by temporary errors.
var errUnavailable = errors.New("not now")

// statusOf returns the HTTP status and the error code for an error.
func statusOf(err error) (status int, code string) {
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, archive.ErrNotFound), errors.Is(err, logapi.ErrNoAgent), errors.Is(err, logapi.ErrNoLog), errors.Is(err, logapi.ErrUnmeasured):
		return http.StatusNotFound, "NotFound"
	case errors.Is(err, errToken):
		return http.StatusForbidden, "Forbidden"
	case errors.Is(err, archive.ErrElsewhere):
		return http.StatusNotImplemented, api.CodeElsewhere
	case errors.Is(err, archive.ErrExporting), errors.Is(err, archive.ErrImporting):
		return http.StatusConflict, api.CodeBusy
	case errors.Is(err, archive.ErrNotEnded), errors.Is(err, archive.ErrNotGone):
		return http.StatusConflict, "Conflict"
	case errors.Is(err, archive.ErrTooLarge), errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, "TooLarge"
	case errors.Is(err, archive.ErrBadQuery), errors.Is(err, agents.ErrBadQuery), errors.Is(err, archive.ErrMismatch):
		return http.StatusBadRequest, "BadRequest"
	case errors.Is(err, errUnavailable), errors.Is(err, listing.ErrUnavailable), errors.Is(err, logapi.ErrAway), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "Unavailable"
	}
	return http.StatusInternalServerError, "Internal"
}

// writeError sends an error as JSON. If the response has already begun, the client only notices that the response is incomplete.
func writeError(w http.ResponseWriter, err error) {
	status, code := statusOf(err)
	message := err.Error()
	if remedy := hint.Of(err); remedy != "" {
		message += "; " + remedy
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	write(w, status, api.Error{Code: code, Message: message})
}

// write sends a JSON response. It ignores errors of connections, because the client is then gone.
func write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

// jsonErrors converts the mux's errors for unknown paths and methods to JSON.
func jsonErrors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&plainErrors{ResponseWriter: w, r: r}, r)
	})
}

// plainErrors is a ResponseWriter that replaces a plain-text error with a JSON error.
type plainErrors struct {
	http.ResponseWriter
	r        *http.Request
	replaced bool
}

// WriteHeader implements http.ResponseWriter.
func (p *plainErrors) WriteHeader(status int) {
	if status < 400 || !strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.ResponseWriter.WriteHeader(status)
		return
	}
	p.replaced = true
	p.Header().Del("X-Content-Type-Options")
	code := "BadRequest"
	message := fmt.Sprintf("%s is not for %s", p.r.Method, p.r.URL.Path)
	if status == http.StatusNotFound {
		code, message = "NotFound", "there is nothing at "+p.r.URL.Path
	}
	write(p.ResponseWriter, status, api.Error{Code: code, Message: message})
}

// Write implements http.ResponseWriter.
func (p *plainErrors) Write(data []byte) (int, error) {
	if p.replaced {
		return len(data), nil
	}
	return p.ResponseWriter.Write(data)
}

// Unwrap returns the original writer for http.ResponseController.
func (p *plainErrors) Unwrap() http.ResponseWriter { return p.ResponseWriter }
