package assembly_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

func TestPathsHeadersAndMethods(t *testing.T) {
	h := newHouse(t)
	for path, want := range map[string]int{
		"/api/v2/nothing": 404, "/api/v9/jobs": 404, "/view.html": 404, "/prometheus/-/reload": 404, "/grafana/": 404, "/metrics": 404, "/readyz": 404, "/debug/pprof": 404,
		"/api/v2/jobs/..%2f..%2fprometheus": 400, "/api/v2/%2e%2e/x": 400, "/api//v2/jobs": 400, "/api/v2/jobs/%00": 400,
	} {
		a := h.as("root", "GET", path, "")
		assert.Equal(t, want, a.Status, "%s: %s", path, a.Body)
		assert.NotEmpty(t, a.Code(), path)
	}
	a := h.as("root", "DELETE", "/api/v2/info/", "")
	assert.Equal(t, 200, a.Status, "info takes any method")
	a = h.as("root", "PATCH", "/api/v2/jobs", "")
	assert.Equal(t, 405, a.Status)
	assert.Equal(t, "GET, HEAD, OPTIONS, POST", a.Header.Get("Allow"))
	a = h.Do("GET", "/api/v2/users/me?token=hunter2&code=hunter3", "hunter4hunter4", "")
	assert.NotContains(t, a.Body, "hunter")
	assert.NotContains(t, h.Printed.String(), "hunter")

	// Pages of other origins send a preflight request.
	a = h.Do("OPTIONS", "/api/v2/jobs/ann~x/executionType", "", "", "Origin", "https://portal.example.org", "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization,content-type")
	assert.Equal(t, 204, a.Status)
	assert.Equal(t, "*", a.Header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "authorization,content-type", a.Header.Get("Access-Control-Allow-Headers"))
	assert.Contains(t, a.Header.Get("Access-Control-Allow-Methods"), "PUT")
	assert.Empty(t, a.Header.Get("Access-Control-Allow-Credentials"))
	a = h.Do("GET", "/api/v2/jobs", "", "")
	assert.Equal(t, "*", a.Header.Get("Access-Control-Allow-Origin"), "refusals, too: the portal reads them")

	// An unchanged response isn't sent again. The response to a HEAD request has no body.
	a = h.as("vera", "GET", "/api/v2/jobs", "")
	tag := a.Header.Get("ETag")
	require.NotEmpty(t, tag)
	assert.Equal(t, 304, h.Do("GET", "/api/v2/jobs", h.tokens["vera"], "", "If-None-Match", tag).Status)
	a = h.as("vera", "HEAD", "/api/v2/jobs", "")
	assert.Equal(t, 200, a.Status)
	assert.Empty(t, a.Body)

	a = h.Do("GET", "/api/v2/info", "", "", "X-Request-Id", "mine-0123456789")
	assert.NotEqual(t, "mine-0123456789", a.Header.Get("X-Request-Id"), "the audit's id is the server's")
	assert.Contains(t, h.Printed.String(), `"clientRequest":"mine-0123456789"`)
	assert.Equal(t, "max-age=31536000", a.Header.Get("Strict-Transport-Security"))
	a = h.Do("GET", "/api/v2/info", "", "", "X-Request-Id", `forged"id`)
	assert.NotEqual(t, `forged"id`, a.Header.Get("X-Request-Id"))

	a = h.as("ann", "POST", "/api/v2/jobs", strings.Repeat("# much\n", 200_000))
	assert.Equal(t, 413, a.Status, "more than twice a job file")
	a = h.as("ann", "PUT", "/api/v2/jobs/ann~x/executionType", `{"value":"`+strings.Repeat("x", 200_000)+`"}`)
	assert.Equal(t, 413, a.Status)
}

func TestWhoAsksTooMuchWaits(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := settings.Default()
	s.Limits.PerMinute, s.Limits.PerTokenMinute, s.Limits.SubmitPerHour, s.Limits.ChangesPerHour = 20, 60, 3, 10
	h := houseOn(t, c, servertest.Options{Settings: s})
	last := 0
	for range 30 {
		last = h.Do("GET", "/api/v2/info", "", "").Status
	}
	assert.Equal(t, 429, last)
	a := h.Do("GET", "/api/v2/info", "not a token", "")
	assert.Equal(t, 429, a.Status, "a token that is none doesn't help")
	assert.Equal(t, "TooManyRequestsError", a.Code())
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	assert.Equal(t, 200, h.as("ann", "GET", "/api/v2/info", "").Status, "who has one isn't held up by the neighbours")
	for i := range 4 {
		a = h.Submit(h.tokens["ann"], fmt.Sprintf("many-%d", i), "speech")
	}
	assert.Equal(t, http.StatusTooManyRequests, a.Status)
	for range 10 {
		a = h.as("root", "POST", "/api/v3/jobs/ann/many-0/stop", "")
		assert.Equal(t, 200, a.Status)
	}
	assert.Equal(t, 429, h.as("root", "POST", "/api/v3/jobs/ann/many-0/stop", "").Status, "an hour has so many changes")
	assert.Equal(t, 200, h.as("root", "GET", "/api/v3/jobs/ann/many-0", "").Status, "reading is no change")
	assert.Equal(t, 202, h.Submit(h.tokens["abe"], "one", "speech").Status, "a limit is a person's own")
	for range 70 {
		last = h.as("ann", "GET", "/api/v2/info", "").Status
	}
	assert.Equal(t, 429, last)
}

func TestOnePersonHasNoMoreUnfinishedJobsThanTheSettingsAllow(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := settings.Default()
	s.Limits.LiveJobs = 2
	h := houseOn(t, c, servertest.Options{Settings: s})
	for i := range 2 {
		require.Equal(t, 202, h.Submit(h.tokens["ann"], fmt.Sprintf("job-%d", i), "speech").Status)
	}
	a := h.Submit(h.tokens["ann"], "job-2", "speech")
	assert.Equal(t, 403, a.Status)
	assert.Equal(t, "NoEnoughQuotaError", a.Code())
	assert.Contains(t, a.JSON()["message"], "ann has 2 unfinished jobs and would have 3; one person may have 2")
	assert.Equal(t, 404, h.as("ann", "GET", "/api/v3/jobs/ann/job-2", "").Status)
}
