package server

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// maxAuditBody is the maximum size in bytes of a request with audit records.
const maxAuditBody = 8 << 20

// opensAudit reports whether a request contains the token for the audit.
func (s *Server) opensAudit(r *http.Request) bool {
	token := ""
	if s.o.AuditToken != nil {
		token = s.o.AuditToken()
	}
	return token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(api.AuditTokenHeader)), []byte(token)) == 1
}

// guardAudit returns a handler that rejects clients without the token for the audit. The token for jobs isn't enough, because more people have
// it.
func (s *Server) guardAudit(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.AuditToken == nil || s.o.AuditToken() == "" {
			writeError(w, fmt.Errorf("%w: the controller waits for the API server, which has the Secret %s", errUnavailable, api.AuditTokenSecret))
			return
		}
		if !s.opensAudit(r) {
			write(w, http.StatusForbidden, api.Error{Code: "Forbidden", Message: "the audit requires the right to read the Secret " + api.AuditTokenSecret + " in the controller's namespace"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// receiveAudit stores audit records.
func (s *Server) receiveAudit(w http.ResponseWriter, r *http.Request) error {
	var records []audit.Record
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAuditBody))
	body.DisallowUnknownFields()
	if err := body.Decode(&records); err != nil {
		return fmt.Errorf("%w: the records can't be read: %w", archive.ErrBadQuery, err)
	}
	if err := s.o.Store.SaveAudit(r.Context(), records); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// serveAudit sends a page of audit records.
func (s *Server) serveAudit(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	q := audit.Query{
		Actor: v.Get("actor"), Object: v.Get("object"), Owner: v.Get("owner"), Kind: v.Get("kind"), Verb: v.Get("verb"), Outcome: v.Get("outcome"), Cursor: v.Get("cursor"),
	}
	if err := onlyKnown(v, "actor", "object", "owner", "kind", "verb", "outcome", "since", "until", "limit", "cursor"); err != nil {
		return err
	}
	var err error
	if q.Since, err = instant(v, "since"); err != nil {
		return err
	}
	if q.Until, err = instant(v, "until"); err != nil {
		return err
	}
	limit, err := number(v, "limit")
	if err != nil {
		return err
	}
	q.Limit = int(limit)
	page, err := s.o.Store.Audit(r.Context(), q)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, page)
	return nil
}
