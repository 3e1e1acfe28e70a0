package server

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/openpai/paictl/pkg/job/archive"
)

// receiveArchive imports an export of an archive. Existing rows aren't changed. The audit is imported only if the client has the token for the
// audit.
func (s *Server) receiveArchive(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength < 0 {
		w.Header().Set("Connection", "close") // the body is not read
		return fmt.Errorf("%w: the size is missing", archive.ErrBadQuery)
	}
	added, err := s.o.Store.Import(r.Context(), r.Body, r.ContentLength, s.opensAudit(r))
	if err != nil {
		w.Header().Set("Connection", "close") // there may be more
		return err
	}
	s.o.Log.InfoContext(r.Context(), "a history of jobs was put back", "jobs", added.Jobs, "known", added.Known)
	if s.o.Imported != nil {
		s.o.Imported()
	}
	write(w, http.StatusOK, added)
	return nil
}

// serveArchive sends a copy of the whole archive as an SQLite file. The copy includes the audit only if the client has the token for the audit.
func (s *Server) serveArchive(w http.ResponseWriter, r *http.Request) error {
	data, size, err := s.o.Store.Export(r.Context(), s.opensAudit(r))
	if err != nil {
		return err
	}
	defer data.Close()
	w.Header().Set("Content-Type", "application/vnd.sqlite3")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.Copy(w, data); err != nil {
		// The length has been sent before, so the client notices that the export is incomplete. This also logs it.
		s.o.Log.WarnContext(r.Context(), "the export of the archive is incomplete", "error", err.Error())
	}
	return nil
}
