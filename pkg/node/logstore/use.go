package logstore

import (
	"encoding/json"
	"net/http"
)

// serveUse serves the resource use of job containers. serveUse doesn't serve the resource use of other containers.
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
	_, _ = w.Write(data) // an error means that the client has disconnected
}
