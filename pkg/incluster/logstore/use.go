package logstore

import (
	"encoding/json"
	"net/http"
)

// serveUse tells what the containers of jobs use, and of no others: what else runs on the machine is no one's business here.
func (s *Server) serveUse(w http.ResponseWriter, r *http.Request) {
	list, err := s.meter.Use(r.Context(), s.store.uids())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	data, err := json.Marshal(list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // a client that is gone gets nothing
}
