package gangs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// userError is an error of the caller. All other errors are errors of the platform. HiveD's clients distinguish them by the
// status code and by the beginning of the text.
type userError struct {
	code int
	text string
}

func (e *userError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &userError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &userError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// errNotLeading means that this replica isn't the leader.
var errNotLeading = errors.New("this replica isn't the leader")

// errBug means that a panic ended the request.
var errBug = errors.New("a bug of the scheduler, which its log shows")

// envelope returns the status code and the text of an error in HiveD's format.
func envelope(err error) (code int, text string) {
	var user *userError
	switch {
	case errors.As(err, &user):
		return user.code, "hivedscheduler: User Error: " + err.Error()
	case errors.Is(err, errNotLeading), errors.Is(err, errBusy):
		code = http.StatusServiceUnavailable
	default:
		code = http.StatusInternalServerError
	}
	return code, "hivedscheduler: Platform Error: " + err.Error()
}

func writeError(w http.ResponseWriter, err error) {
	code, text := envelope(err)
	writeJSON(w, code, text)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // an error means that the client has disconnected
}
