package server

import (
	"crypto/subtle"
	"fmt"
	"net/http"

	"github.com/openpai/paictl/pkg/job/api"
)

// guard returns a handler that rejects clients without the token. All pods can connect to the server, and jobs must not read the history and the
// output of other jobs.
func (s *Server) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := s.o.Token()
		if token == "" {
			writeError(w, fmt.Errorf("%w: the controller waits for the API server, which has the Secret %s", errUnavailable, api.TokenSecret))
			return
		}
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(api.TokenHeader)), []byte(token)) != 1 {
			write(w, http.StatusForbidden, api.Error{Code: "Forbidden",
				Message: "the history of jobs requires the right to read the Secret " + api.TokenSecret + " in the controller's namespace"})
			return
		}
		h.ServeHTTP(w, r)
	})
}
