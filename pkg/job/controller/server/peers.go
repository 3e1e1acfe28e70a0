package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

// peersTime is how long a task's request may wait for a response. After that, the task repeats the request. It is shorter than the timeouts of
// proxies between them.
const peersTime = 50 * time.Second

// Peers provides the addresses of jobs.
type Peers struct {
	Board *rendezvous.Board
	Key   func() []byte // the key of the tokens; empty while it isn't known
	Leads func() bool   // reports whether this replica publishes them
}

// errToken is returned if a request doesn't contain the right token.
var errToken = errors.New("the code and the addresses of a job are for its tasks, which have its tokens")

// job returns the UID of the job to which the requesting task belongs. The request must contain the job's token for something, which is either
// addresses or code.
func (s *Server) job(r *http.Request, something string) (uid, token string, err error) {
	key := s.o.Peers.Key()
	if len(key) == 0 {
		return "", "", fmt.Errorf("%w: the job controller waits for the API server, which has the Secret of the jobs' tokens", errUnavailable)
	}
	token, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	uid, ok := peers.CheckToken(key, something, token)
	if !ok {
		return "", "", errToken
	}
	return uid, token, nil
}

// servePeers sends the addresses of all tasks of a job to one of its tasks, once every task has an address. If the response has no content, the
// task must repeat the request.
func (s *Server) servePeers(w http.ResponseWriter, r *http.Request) error {
	framework := r.PathValue("framework")
	uid, token, err := s.job(r, framework)
	if err != nil {
		return err
	}
	attempt, err := strconv.ParseInt(r.URL.Query().Get("attempt"), 10, 32)
	if err != nil || attempt < 0 {
		return fmt.Errorf("%w: attempt isn't the number of an attempt", archive.ErrBadQuery)
	}
	if !s.o.Peers.Leads() {
		w.Header().Set("Connection", "close") // the next request may reach the replica that leads
		write(w, http.StatusServiceUnavailable, api.Error{Code: "NotLeading", Message: "another replica of the job controller leads"})
		return nil
	}
	seen := uint64(0)
	if text := r.URL.Query().Get("seen"); text != "" {
		if seen, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("%w: seen isn't the version of a message", archive.ErrBadQuery)
		}
	}
	// The headers are sent immediately, so that the task knows that the server has accepted the request, and can wait.
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // if the task no longer exists, the request's context has ended
	m, err := s.o.Peers.Board.Wait(r.Context(), rendezvous.Attempt{Framework: framework, UID: types.UID(uid), Number: int32(attempt)}, seen)
	if err == nil { // otherwise some tasks have no address yet, or the attempt has ended: an empty response
		_ = peers.WriteMessage(w, m.Version, m.Data, token) // a task that is gone
	}
	return nil
}
