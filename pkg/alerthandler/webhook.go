package alerthandler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
)

const (
	// mostMessage limits the body of a request from Alertmanager, in bytes.
	mostMessage = 8 << 20
	// mostAlerts limits the number of alerts in one request.
	mostAlerts = 10_000
)

var errFull = errors.New("too many actions aren't finished")

type message struct {
	Version string         `json:"version"`
	Alerts  []policy.Alert `json:"alerts"`
}

// ServeAlerts handles the alerts in a request from Alertmanager. It responds with 503 if an alert couldn't be handled, so that Alertmanager sends the
// request again.
func (h *Handler) ServeAlerts(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostMessage))
	var m message
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	switch {
	case err != nil:
		http.Error(w, "this isn't a message of Alertmanager: "+err.Error(), http.StatusBadRequest)
		return
	case len(m.Alerts) > mostAlerts:
		http.Error(w, fmt.Sprintf("the message has %d alerts, and may have %d", len(m.Alerts), mostAlerts), http.StatusRequestEntityTooLarge)
		return
	case !h.Synced():
		http.Error(w, "the cluster isn't known yet", http.StatusServiceUnavailable)
		return
	}
	var errs []error
	known := h.latest()
	for i := range m.Alerts {
		if err := h.take(r.Context(), known, &m.Alerts[i]); err != nil {
			errs = append(errs, err)
			if r.Context().Err() != nil {
				break
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		h.o.Log.WarnContext(r.Context(), "alerts were not taken", "error", trimmed(err.Error()))
		http.Error(w, "some alerts were not taken; send the message again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
