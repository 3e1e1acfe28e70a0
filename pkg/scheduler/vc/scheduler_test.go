package vc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// answering returns a Scheduler whose requests go to the handler answer through an API server.
func answering(t *testing.T, answer http.HandlerFunc) *Scheduler {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/api/v1/namespaces/pai-system/services/scheduler:http/proxy/", http.StripPrefix("/api/v1/namespaces/pai-system/services/scheduler:http/proxy", answer))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return NewScheduler(client)
}

func write(t *testing.T, w http.ResponseWriter, code int, v any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	assert.NoError(t, json.NewEncoder(w).Encode(v))
}

func TestTheSchedulerIsAskedThroughTheAPIServer(t *testing.T) {
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.String() {
		case "GET /v1/virtualclusters":
			write(t, w, 200, api.VirtualClusters{Generation: 3, Items: []api.VirtualCluster{{Name: "a", Guaranteed: 16}}})
		case "GET /v1/queue?vc=a%2Fb":
			write(t, w, 200, api.Queue{Items: []api.Queued{{VC: "a/b", Group: "g"}}})
		case "POST /v1/outlook":
			q := api.OutlookQuery{}
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&q))
			assert.Equal(t, 3, q.Pods[0].Count)
			write(t, w, 200, api.Outlook{Gangs: []api.NewGang{{VC: "a", Result: api.Starts}}})
		case "POST /v1/virtualclusters/validate":
			body, _ := io.ReadAll(r.Body)
			assert.Equal(t, "virtualClusters: {}", string(body))
			write(t, w, 200, api.Validation{Valid: true})
		default:
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
	})
	all, err := s.VirtualClusters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 16, all.Items[0].Guaranteed)
	q, err := s.Queue(t.Context(), api.QueueQuery{VC: "a/b"})
	require.NoError(t, err)
	assert.Equal(t, "g", q.Items[0].Group)
	v, err := s.Validate(t.Context(), []byte("virtualClusters: {}"))
	require.NoError(t, err)
	assert.True(t, v.Valid)
	o, err := s.Outlook(t.Context(), &api.OutlookQuery{Pods: []api.NewPods{{Count: 3}}})
	require.NoError(t, err)
	assert.Equal(t, api.Starts, o.Gangs[0].Result)
}

func TestAnEarlierSchedulerThatTellsAllOfTheQueueIsAskedForAPartOfIt(t *testing.T) {
	asked := ""
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		write(t, w, 200, map[string]any{"items": []api.Queued{{VC: "a", Group: "ann~x/0"}, {VC: "a", Group: "bob~x/0"}, {VC: "a", Group: "bob~x/1"}, {VC: "a", Group: "eve~x/0"}}})
	})
	q, err := s.Queue(t.Context(), api.QueueQuery{Prefixes: []string{"ann~x/", "bob~x/"}, Limit: 2})
	require.NoError(t, err)
	assert.Equal(t, "limit=2&prefix=ann~x%2F&prefix=bob~x%2F", asked)
	assert.Equal(t, 3, q.Total)
	require.Len(t, q.Items, 2)
	assert.Equal(t, "bob~x/0", q.Items[1].Group)
}

func TestTheSchedulerIsSentTheTokenThatItAsksFor(t *testing.T) {
	reads := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/namespaces/pai-system/secrets/job-controller-token", func(w http.ResponseWriter, _ *http.Request) {
		reads++
		write(t, w, 200, map[string]any{"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"name": "job-controller-token"}, "data": map[string]string{"token": "czNjcmV0"}})
	})
	mux.HandleFunc("/api/v1/namespaces/pai-system/services/scheduler:http/proxy/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Pai-Token") != "s3cret" {
			write(t, w, 403, "hivedscheduler: User Error: it is closed")
			return
		}
		write(t, w, 200, api.Queue{})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	s := NewScheduler(client)
	for range 2 {
		_, err = s.Queue(t.Context(), api.QueueQuery{})
		require.NoError(t, err)
	}
	assert.Equal(t, 1, reads)
	closed := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		write(t, w, 403, "hivedscheduler: User Error: it is closed")
	})
	_, err = closed.Queue(t.Context(), api.QueueQuery{})
	require.EqualError(t, err, "ask the scheduler: it is closed")
	assert.Contains(t, hint.Of(err), "Permissions")
	assert.True(t, apierrors.IsForbidden(err))
}

func TestASchedulerThatDoesntAnswerSaysWhy(t *testing.T) {
	status := func(code int, reason string) any {
		return map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "said by the API server"}
	}
	for name, c := range map[string]struct {
		code    int
		body    any
		running bool
		says    string
	}{
		"none is installed":   {404, status(404, "NotFound"), false, "the scheduler doesn't answer: it isn't installed"},
		"no pod is ready":     {503, status(503, "ServiceUnavailable"), false, "the scheduler doesn't answer: none of its pods is ready"},
		"none leads":          {503, "hivedscheduler: Platform Error: this replica isn't the leader", false, "the scheduler doesn't answer: this replica isn't the leader"},
		"a wrong question":    {400, "hivedscheduler: User Error: no such virtual cluster", true, "ask the scheduler: no such virtual cluster"},
		"it has no such path": {404, "404", true, "ask the scheduler: 404"},
		"not allowed":         {403, status(403, "Forbidden"), true, "ask the scheduler: said by the API server"},
		"not JSON":            {200, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.body == nil {
					_, _ = io.WriteString(w, "<html>")
					return
				}
				write(t, w, c.code, c.body)
			})
			_, err := s.VirtualClusters(t.Context())
			require.ErrorContains(t, err, c.says)
			assert.Equal(t, !c.running, errors.Is(err, ErrNotRunning))
		})
	}
}

func TestASchedulerThatHangsIsNotAnErrorOfTheClient(t *testing.T) {
	s := answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.VirtualClusters(ctx)
	require.EqualError(t, err, "ask the scheduler: no answer in time: context deadline exceeded")
}

func configuration(n int) cell.Config {
	return cell.Config{VirtualClusters: []cell.VirtualCluster{{Name: "a", Cells: []cell.Virtual{{Type: "x", Count: n}}, Quota: cell.Quota{PerUser: 2}}}}
}

func changed() []api.ChangedVirtualCluster {
	return []api.ChangedVirtualCluster{{Name: "a", Before: &Configured(configuration(1))[0], After: &Configured(configuration(2))[0]}, {Name: "gone", Before: &api.VirtualCluster{}}}
}

func TestAChangeIsInUseOnceTheSchedulerSaysSo(t *testing.T) {
	var asked atomic.Int32
	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			write(t, w, 200, api.VirtualClusters{Generation: 1, Items: Configured(configuration(1))})
		case 2: // another replica takes over
			write(t, w, 503, "hivedscheduler: Platform Error: this replica isn't the leader")
		default:
			write(t, w, 200, api.VirtualClusters{Generation: 1, Items: Configured(configuration(2))})
		}
	})
	now, err := Await(t.Context(), s.VirtualClusters, changed(), "", time.Millisecond)
	require.NoError(t, err)
	assert.Equal(t, 2, now.Items[0].Cells[0].CellNumber)
	assert.EqualValues(t, 3, asked.Load())
}

func TestAChangeThatIsRefusedOrNeverUsedIsAnError(t *testing.T) {
	s := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		write(t, w, 200, api.VirtualClusters{Items: Configured(configuration(1)), Problem: "x: there are only 1"})
	})
	_, err := Await(t.Context(), s.VirtualClusters, changed(), "an old one", time.Millisecond)
	require.ErrorContains(t, err, "the scheduler refuses the configuration: x: there are only 1")
	assert.Contains(t, hint.Of(err), "config rollback")

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Await(ctx, s.VirtualClusters, changed(), "x: there are only 1", time.Millisecond)
	require.ErrorContains(t, err, "doesn't use the new configuration yet")
}

func TestAChangeIsMadeOnceAllItsVirtualClustersAreAsItLeavesThem(t *testing.T) {
	q := func(n int) *api.Quota { return &api.Quota{PerUser: n} }
	changes := []api.ChangedVirtualCluster{
		{Name: "a", After: &api.VirtualCluster{Name: "a", Cells: []api.Cells{{CellType: "x", CellNumber: 1}, {CellType: "y", CellNumber: 0}}, Quota: q(1)}},
		{Name: "b", After: &api.VirtualCluster{Name: "b", PinnedCells: []string{"p"}}}, {Name: "gone", Before: &api.VirtualCluster{Name: "gone"}},
	}
	now := []api.VirtualCluster{{Name: "b", PinnedCells: []string{"p"}, Used: 3, Policy: "balanced"}, {Name: "a", Cells: []api.Cells{{CellType: "x", CellNumber: 1}}, Quota: q(1)}, {Name: "other"}}
	assert.True(t, made(changes, now))
	for name, change := range map[string]func([]api.VirtualCluster) []api.VirtualCluster{
		"one less":     func(v []api.VirtualCluster) []api.VirtualCluster { return v[:1] },
		"one too many": func(v []api.VirtualCluster) []api.VirtualCluster { v[2].Name = "gone"; return v },
		"another name": func(v []api.VirtualCluster) []api.VirtualCluster { v[0].Name = "c"; return v },
		"another number": func(v []api.VirtualCluster) []api.VirtualCluster {
			v[1].Cells = []api.Cells{{CellType: "x", CellNumber: 2}}
			return v
		},
		"another pin":    func(v []api.VirtualCluster) []api.VirtualCluster { v[0].PinnedCells = nil; return v },
		"another quota":  func(v []api.VirtualCluster) []api.VirtualCluster { v[1].Quota = q(2); return v },
		"another policy": func(v []api.VirtualCluster) []api.VirtualCluster { v[0].Policy = "start-now"; return v },
		"no quota":       func(v []api.VirtualCluster) []api.VirtualCluster { v[1].Quota = nil; return v },
	} {
		other := append([]api.VirtualCluster{}, now...)
		assert.False(t, made(changes, change(other)), name)
	}
}
