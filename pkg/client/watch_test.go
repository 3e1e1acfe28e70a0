package client

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// forbidden is an event that ends a watch with an error.
const forbidden = `event: end` + "\n" + `data: {"code":"ForbiddenUserError","message":"it isn't yours"}` + "\n\n"

// told reads a list from a server that sends one of the streams on each connection, until the server sends forbidden. places are the places from
// which the connections resumed.
func told(t *testing.T, streams ...string) (k *kept, places []string, err error) {
	t.Helper()
	c := to(t, func(w http.ResponseWriter, r *http.Request) {
		n := len(places)
		places = append(places, r.Header.Get(api.LastEventID))
		_, _ = fmt.Fprint(w, streams[n])
		w.(http.Flusher).Flush()
		if n < len(streams)-1 {
			panic(http.ErrAbortHandler)
		}
	})
	k = &kept{filter: job.Filter{Limit: 10}, first: make(chan struct{})}
	err = c.keep(t.Context(), k)
	return k, places, err
}

func snapshot(why string) string {
	return "event: snapshot\ndata: {\"why\":\"" + why + "\"}\n\n"
}

func row(uid, state string) string {
	return fmt.Sprintf("event: job\ndata: {\"uid\":%q,\"state\":%q}\n\n", uid, state)
}

const ready = "event: ready\ndata: {}\nid: p1\n\n"

func TestAListThatIsCutOffDoesNotGoOnOverTheNextConnection(t *testing.T) {
	k, places, err := told(t,
		snapshot("new")+row("1", "running")+row("2", "running")+ready+snapshot("expired")+row("1", "running"),
		row("1", "succeeded")+row("3", "waiting")+"id: p2\n\n"+forbidden) // another server knows what changed since p1
	require.ErrorContains(t, err, "it isn't yours")
	assert.Equal(t, []string{"", "p1"}, places)
	states := map[string]string{}
	for _, r := range k.page().Items {
		states[r.UID] = r.State
	}
	assert.Equal(t, map[string]string{"1": "succeeded", "2": "running", "3": "waiting"}, states)
}

func TestChangesInAListThatWasNotSentAreAnError(t *testing.T) {
	for name, stream := range map[string]string{"a job": row("1", "running"), "an end of a list": ready, "a second end": snapshot("new") + ready + ready} {
		t.Run(name, func(t *testing.T) {
			_, _, err := told(t, stream+forbidden)
			require.ErrorIs(t, err, errNoList)
		})
	}
}
