package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
)

// jobs is a fake controller.
type jobs struct {
	filter listing.Filter
	err    error
	leads  bool
	leader string
	events []api.Event
}

func (j *jobs) List(_ context.Context, f listing.Filter) (*listing.Page, error) {
	j.filter = f
	return &listing.Page{Items: []listing.Row{}, Next: "n"}, j.err
}
func (j *jobs) Leads() bool               { return j.leads }
func (j *jobs) Leader() string            { return j.leader }
func (j *jobs) Events(string) []api.Event { return j.events }

func TestAListOfJobsThatLiveIsAskedForAsItSays(t *testing.T) {
	h, j := newHarness(t), &jobs{leads: true}
	h.options.Jobs = j
	page := get[listing.Page](t, h, "/v1/jobs?live=true&user=ann&vc=vision&state=queued,retry&state=failed&keyword=bert&name=train&since=2026-03-01T12:00:00Z&limit=7&cursor=abc-1234")
	assert.Equal(t, "n", page.Next)
	assert.Equal(t, listing.Filter{User: "ann", VirtualCluster: "vision", Keyword: "bert", InName: "train", Phases: []listing.Phase{listing.Queued, listing.Retry, listing.Failed},
		Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Limit: 7, Cursor: "abc-1234"}, j.filter)
	get[listing.Page](t, h, "/v1/jobs?live=true")
	assert.Equal(t, 100, j.filter.Limit)
}

func TestAListThatCannotBeHadNowIsAskedForAgain(t *testing.T) {
	h := newHarness(t)
	for name, j := range map[string]*jobs{
		"it is behind":                {leads: true, err: fmt.Errorf("%w: it is behind", listing.ErrUnavailable)},
		"no one leads":                {},
		"the leader doesn't answer":   {leader: "127.0.0.1:1"},
		"the leader is no address":    {leader: "http://[::1"},
		"the caller went":             {leads: true, err: context.Canceled},
		"the leader has a bad name":   {leader: "a b\r\nX: y"},
		"the leader is a path":        {leader: "../../etc/passwd"},
		"the leader says that itself": {leader: "0.0.0.0:0"},
	} {
		h.options.Jobs = j
		resp := h.ask(t, http.MethodGet, "/v1/jobs?live=true", nil)
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, name)
		assert.NotEmpty(t, resp.Header.Get("Retry-After"), name)
		assert.Equal(t, "Unavailable", failure(t, resp).Code, name)
	}
	h.options.Jobs = &jobs{leads: true, err: errors.New("a bug")}
	assert.Equal(t, http.StatusInternalServerError, h.ask(t, http.MethodGet, "/v1/jobs?live=true", nil).StatusCode)
	h.options.Jobs = nil
	assert.Equal(t, http.StatusServiceUnavailable, h.ask(t, http.MethodGet, "/v1/jobs?live=true", nil).StatusCode)
}

func TestEventsThatTheArchiveWillHaveAreToldAsWell(t *testing.T) {
	h, at := newHarness(t), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	j := &jobs{events: []api.Event{{UID: "b", Time: at.Add(3 * time.Second), Count: 2}, {UID: "c", Time: at.Add(time.Second)}}}
	h.options.Jobs = j
	uids := func() (out []string) {
		for _, e := range get[[]api.Event](t, h, "/v1/jobs/f/events") {
			out = append(out, fmt.Sprint(e.UID, e.Count))
		}
		return out
	}
	assert.Equal(t, []string{"c0", "b2"}, uids(), "of a job that isn't archived")
	require.NoError(t, h.store.SaveEvents(t.Context(), "f", []api.Event{{UID: "a", Time: at, Count: 1}, {UID: "b", Time: at, Count: 1}}))
	assert.Equal(t, []string{"a1", "c0", "b2"}, uids())
	j.events = nil
	assert.Equal(t, []string{"a1", "b1"}, uids())
}
