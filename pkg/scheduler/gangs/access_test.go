package gangs

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// guardedOptions returns options with files for the token and the password, as in a cluster.
func guardedOptions(t *testing.T) Options {
	t.Helper()
	opts, dir := testOptions, t.TempDir()
	opts.TokenFile, opts.AccessFile = filepath.Join(dir, "token"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(opts.TokenFile, []byte("t0ken"), 0o600))
	require.NoError(t, os.WriteFile(opts.AccessFile, []byte("passw0rd"), 0o600))
	return opts
}

func TestOnThePodsNetworkOnlyTheKubeletIsAnsweredWithoutASecret(t *testing.T) {
	c := prepare(t, twoTeams)
	c.start(guardedOptions(t))
	require.NoError(t, c.b.Lead(t.Context()))
	c.create(newPod("w", spec("B", 5, "w:1:2")))
	ask := func(method, path, token, password string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(twoTeams))
		if token != "" {
			r.Header.Set("X-Pai-Token", token)
		}
		if password != "" {
			r.SetBasicAuth("pai", password)
		}
		w := httptest.NewRecorder()
		c.b.API().ServeHTTP(w, r)
		return w.Code
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, 200, ask(http.MethodGet, path, "", ""), path)
	}
	for _, path := range []string{"/", "/v1/queue", "/v1/why/w", "/v1/virtualclusters", "/v1/nodes", "/v1/inspect/affinitygroups/", "/v1/inspect/clusterstatus", "/v1/none"} {
		for _, token := range []string{"", "wrong", "t0ke"} {
			assert.Equal(t, 403, ask(http.MethodGet, path, token, "passw0rd"), path)
		}
	}
	assert.Equal(t, 403, ask(http.MethodPost, api.PathValidate, "", ""))
	assert.Equal(t, 200, ask(http.MethodGet, "/v1/queue", "t0ken", ""))
	assert.Equal(t, 200, ask(http.MethodPost, api.PathValidate, "t0ken", ""))
	assert.Equal(t, 401, ask(http.MethodGet, "/metrics", "t0ken", ""))
	assert.Equal(t, 200, ask(http.MethodGet, "/metrics", "", "passw0rd"))
}

func TestTheStandbyShowsTheLeaderItsOwnToken(t *testing.T) {
	opts := guardedOptions(t)
	c := prepare(t, twoTeams)
	c.start(opts)
	require.NoError(t, c.b.Lead(t.Context()))
	c.create(newPod("w", spec("B", 5, "w:1:2")))
	leader := httptest.NewServer(c.b.API())
	defer leader.Close()
	u, err := url.Parse(leader.URL)
	require.NoError(t, err)
	standby := prepare(t, twoTeams, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "leader-0"}, Status: corev1.PodStatus{PodIP: u.Hostname()}})
	opts.Port = u.Port()
	opts.Election = NewElection(standby.clock.now)
	opts.Election.Follow(&testLock{holder: "leader-0_uuid", identity: "standby-0_uuid"}, 6*time.Second)
	standby.start(opts)
	_, _, err = opts.Election.Get(t.Context())
	require.NoError(t, err)
	var queue api.Queue
	standby.get("/v1/queue", &queue)
	assert.Len(t, queue.Items, 1)
}

// huge returns a short configuration of a cluster with a given number of GPUs.
func huge(gpus int) string {
	return fmt.Sprintf("physicalCluster:\n  cellTypes:\n    N: {childCellType: G, childCellNumber: %d, isNodeLevel: true}\n  physicalCells: [{cellType: N, cellAddress: n}]\n", gpus)
}

func TestACellOfMillionsIsRefusedBeforeItIsBuilt(t *testing.T) {
	c := newCluster(t, twoTeams)
	out, err := c.b.validate(huge(500_000))
	require.NoError(t, err)
	assert.False(t, out.Valid)
	assert.Contains(t, fmt.Sprint(out.Problems), "more than 65536 cells")
	out, err = c.b.validate(huge(1000))
	require.NoError(t, err)
	for _, p := range out.Problems {
		assert.NotContains(t, p.Message, "cells", "that is none too many")
	}
	code, text := c.ask(http.MethodPost, api.PathValidate, strings.Repeat("#", maxConfig+1))
	assert.Equal(t, http.StatusBadRequest, code, text)
}

func TestConfigurationsAreLookedAtOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Store{validating: make(chan struct{}, validations)}
		e.validating <- struct{}{} // another request, which doesn't end
		_, err := e.validateNext(t.Context(), twoTeams)
		require.ErrorIs(t, err, errBusy)
		code, text := envelope(err)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Contains(t, text, "try again")
		<-e.validating
		_, err = e.validateNext(t.Context(), twoTeams)
		require.ErrorIs(t, err, errNotLeading, "it was its turn")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.validating <- struct{}{}
		_, err = e.validateNext(ctx, twoTeams)
		require.ErrorIs(t, err, errBusy)
	})
}
