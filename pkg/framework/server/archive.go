package server

import (
	"io"
	"net/http"
	"strconv"
)

// serveArchive sends a copy of the whole archive, as a file of SQLite.
func (s *Server) serveArchive(w http.ResponseWriter, r *http.Request) error {
	data, size, err := s.o.Store.Export(r.Context())
	if err != nil {
		return err
	}
	defer data.Close()
	w.Header().Set("Content-Type", "application/vnd.sqlite3")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.Copy(w, data); err != nil {
		// Its length is said already: the client sees that it is cut, and so does the log.
		s.o.Log.WarnContext(r.Context(), "the export of the archive is incomplete", "error", err.Error())
	}
	return nil
}
