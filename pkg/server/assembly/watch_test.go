package assembly_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

const watchPath = "/api/v3/jobs/watch"

// inState returns a function that reports whether an event is about a job in a state.
func inState(w *servertest.Watch, job, state string) func(servertest.Event) bool {
	return func(e servertest.Event) bool {
		row := struct{ State string }{}
		return w.Name(e) == job && e.Into(&row) == nil && row.State == state
	}
}

func of(w *servertest.Watch, job string) func(servertest.Event) bool {
	return func(e servertest.Event) bool { return w.Name(e) == job }
}

// gone deletes the Framework of a job.
func gone(t *testing.T, h *house, user, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(h.cluster.Config)
	require.NoError(t, err)
	require.NoError(t, client.Resource(fv1.Resource).Namespace(kube.JobNamespace).Delete(t.Context(), fv1.ObjectName(user, name), metav1.DeleteOptions{}))
}

func TestAWatchTellsWhatTheListHasAndWhatChanges(t *testing.T) {
	h := newHouse(t)
	h.letGo(t)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "first", "speech").Status)
	require.Equal(t, 202, h.Submit(h.tokens["vic"], "hidden", "vision").Status)
	w := h.Watch(watchPath, h.tokens["ann"], "")
	why, names := w.Snapshot()
	assert.Equal(t, "new", why)
	assert.Equal(t, []string{"ann/first"}, names)
	assert.NotEmpty(t, w.Place)
	root := h.Watch(watchPath+"?user=vic&state=waiting", h.tokens["root"], "")
	_, names = root.Snapshot()
	assert.Equal(t, []string{"vic/hidden"}, names)

	require.Equal(t, 202, h.Submit(h.tokens["vic"], "hidden-2", "vision").Status)
	require.Equal(t, 202, h.Submit(h.tokens["abe"], "second", "speech").Status)
	e := w.Next()
	assert.Equal(t, "abe/second", w.Name(e), "what isn't seen isn't told")
	root.Await("job", of(root, "vic/hidden-2"))
	stopped(t, h, "first")
	w.Await("job", inState(w, "ann/first", "stopped"))
	gone(t, h, "ann", "first")
	row := struct{ Live *bool }{}
	require.NoError(t, w.Await("job", func(e servertest.Event) bool {
		return w.Name(e) == "ann/first" && e.Into(&row) == nil && !*row.Live
	}).Into(&row))
	t.Run("a job that the filter no longer selects leaves the list", func(t *testing.T) {
		waiting := h.Watch(watchPath+"?state=waiting", h.tokens["abe"], "")
		_, names := waiting.Snapshot()
		assert.Equal(t, []string{"abe/second"}, names)
		require.Equal(t, 200, h.as("abe", "POST", "/api/v3/jobs/abe/second/stop", "").Status)
		waiting.Await("gone", of(waiting, "abe/second"))
	})
	t.Run("a filter that is none is refused", func(t *testing.T) {
		for _, q := range []string{"?state=x", "?since=x", "?limit=x"} {
			assert.Equal(t, 400, h.as("ann", "GET", watchPath+q, "").Status, q)
		}
		assert.Equal(t, 400, h.Do("GET", watchPath, h.tokens["ann"], "", "Last-Event-ID", strings.Repeat("1", 200)).Status)
	})
}

func TestAWatchGoesOnAtAnotherServer(t *testing.T) {
	h := newHouse(t)
	h.letGo(t)
	other := servertest.Start(t, h.cluster, servertest.Options{})
	for _, name := range []string{"stays", "goes"} {
		require.Equal(t, 202, h.Submit(h.tokens["ann"], name, "speech").Status)
	}
	h.runs(t, "ann", "stays") // as long as no pod has changed since pods were listed, all jobs are sent again
	w := h.Watch(watchPath, h.tokens["ann"], "")
	w.Snapshot()
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "later", "speech").Status)
	w.Await("job", of(w, "ann/later"))
	place := w.Settle()
	w.Stop()

	gone(t, h, "ann", "goes")
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "new", "speech").Status)
	for name, server := range map[string]*servertest.Server{"here": h.Server, "there": other} {
		t.Run(name, func(t *testing.T) {
			again := server.Watch(watchPath, h.tokens["ann"], place)
			told := map[string]bool{}
			for !told["ann/goes"] || !told["ann/new"] {
				e := again.Next()
				require.Equal(t, "job", e.Name, "%v: no list comes again", e)
				told[again.Name(e)] = true
			}
			assert.Equal(t, map[string]bool{"ann/goes": true, "ann/new": true}, told, "only what changed")
		})
	}
	t.Run("a place that can't be gone on at begins with all", func(t *testing.T) {
		n := strings.Split(place, ".")
		require.Len(t, n, 6)
		at, view := n[4], n[5]
		old := strings.Join(n[:4], ".") + ".1." + view
		ahead := strings.Join([]string{n[0], n[1], "zzzzzzzzzz", n[3], at, view}, ".")
		for _, place := range []string{"x", "...." + view, "1.1." + view, old, "1.1.1.1." + at + "." + view, ahead, "-1.-1.-1.-1.-1." + view, "1.1.1.1.1.1." + view} {
			why, names := h.Watch(watchPath, h.tokens["ann"], place).Snapshot()
			assert.Equal(t, "expired", why, place)
			assert.Subset(t, names, []string{"ann/stays", "ann/later", "ann/new"}, place)
		}
	})
	t.Run("a place of another filter begins with all", func(t *testing.T) {
		for query, place := range map[string]string{"?keyword=new": place, "?state=waiting": "1.1.1.1.1." + strings.Split(place, ".")[5], "": "1.1.1.1.1.1"} {
			why, names := h.Watch(watchPath+query, h.tokens["ann"], place).Snapshot()
			assert.Equal(t, "grants", why)
			assert.Contains(t, names, "ann/new")
		}
	})
	t.Run("a server that began later knows what went before, or begins with all", func(t *testing.T) {
		third := servertest.Start(t, h.cluster, servertest.Options{})
		why, names := third.Watch(watchPath, h.tokens["ann"], place).Snapshot()
		assert.Equal(t, "expired", why)
		assert.ElementsMatch(t, []string{"ann/stays", "ann/later", "ann/new"}, names)
	})
}

func TestAWatchEndsWithTheRightToIt(t *testing.T) {
	h := newHouse(t)
	h.person(t, "wanda", "speech")
	h.person(t, "wim", "vision")
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "train", "speech").Status)
	end := func(w *servertest.Watch) string {
		e := w.Await("end", nil)
		body := struct{ Code string }{}
		require.NoError(t, e.Into(&body))
		assert.Equal(t, servertest.Event{}, w.Next(), "nothing comes after it")
		return body.Code
	}
	watch := func(who string) *servertest.Watch {
		w := h.Watch(watchPath, h.tokens[who], "")
		w.Snapshot()
		return w
	}
	t.Run("a group that is taken away", func(t *testing.T) {
		w := watch("wanda")
		_, err := h.People.Update(t.Context(), "wanda", func(u *v1.UserSpec) error { u.Groups = []string{"vision"}; return nil })
		require.NoError(t, err)
		why, names := w.Snapshot()
		assert.Equal(t, "grants", why)
		assert.Empty(t, names)
	})
	t.Run("a group that is taken away, or given, while there is no connection", func(t *testing.T) {
		h.person(t, "wade", "speech")
		moves := func(place, group string, sees bool) (next string) {
			_, err := h.People.Update(t.Context(), "wade", func(u *v1.UserSpec) error { u.Groups = []string{group}; return nil })
			require.NoError(t, err)
			h.Eventually("the group counts", func() bool {
				return sees == strings.Contains(h.as("wade", "GET", "/api/v3/jobs", "").Body, "train")
			})
			w := h.Watch(watchPath, h.tokens["wade"], place)
			defer w.Stop()
			why, names := w.Snapshot()
			assert.Equal(t, "grants", why)
			assert.Equal(t, sees, len(names) == 1, names)
			return w.Place
		}
		w := watch("wade")
		w.Stop()
		moves(moves(w.Place, "vision", false), "speech", true)
	})
	t.Run("logout", func(t *testing.T) {
		token := h.SignIn("wanda")
		w := h.Watch(watchPath, token, "")
		w.Snapshot()
		require.Equal(t, 200, h.Do("DELETE", "/api/v2/authn/basic/logout", token, "").Status)
		assert.Equal(t, "UnauthorizedUserError", end(w))
	})
	t.Run("disabled", func(t *testing.T) {
		w := watch("wim")
		_, err := h.People.Update(t.Context(), "wim", func(u *v1.UserSpec) error { u.Disabled = true; return nil })
		require.NoError(t, err)
		assert.Equal(t, "UnauthorizedUserError", end(w))
	})
	t.Run("the number of open ones is limited", func(t *testing.T) {
		for range 20 {
			watch("vera")
		}
		a := h.as("vera", "GET", watchPath, "")
		assert.Equal(t, 503, a.Status, a.Body)
		assert.NotEmpty(t, a.Header.Get("Retry-After"))
	})
}

func TestAServerThatEndsTellsItsWatches(t *testing.T) {
	h := newHouse(t)
	ctx, stop := context.WithCancel(t.Context())
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- h.Assembly.Server.Serve(ctx, l, h.Assembly.Server) }()
	front := *h.Server
	front.URL, front.Client = "http://"+l.Addr().String(), &http.Client{}
	w := front.Watch(watchPath, h.tokens["ann"], "")
	w.Snapshot()
	stop()
	e := w.Await("end", nil)
	assert.Contains(t, e.Data, "UnavailableError")
	assert.Equal(t, "1000", w.Retry)
	assert.Equal(t, servertest.Event{}, w.Next())
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a stream")
	}
}

func TestAWatchOutlivesTheAPIServersAbsence(t *testing.T) {
	base := newHouse(t)
	api := cut(t, base.cluster.Config)
	h := houseOn(t, base.cluster, servertest.Options{API: api.apply})
	w := h.Watch(watchPath, h.tokens["ann"], "")
	w.Snapshot()
	api.take()
	w.Await("problem", nil)
	a := h.as("ann", "GET", watchPath, "")
	assert.Equal(t, 503, a.Status, a.Body)
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Equal(t, 202, base.Submit(base.tokens["ann"], "meanwhile", "speech").Status)
	api.give()
	back, told := false, false
	for !back || !told {
		e := w.Next()
		require.NotEqual(t, servertest.Event{}, e)
		back = back || e.Name == "back"
		told = told || e.Name == "job" && w.Name(e) == "ann/meanwhile"
	}
}
