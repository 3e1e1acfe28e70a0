package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
)

func at(t testing.TB, target string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.URL = u
	return r
}

func TestPathsAreSpelledAsTheTableDoes(t *testing.T) {
	table := server.NewTable()
	for _, path := range []string{"/api/v2", "/api/v2/jobs", "/api/v2/jobs/{job}", "/api/v2/jobs/watch", "/api/v2/jobs/{job}/executionType", "/api/v2/users/{user}/extension", "/api/v2/groups/{group}/extension/{path...}"} {
		table.Add(http.MethodGet, path)
	}
	for from, want := range map[string]string{
		"/api/v2":                               "/api/v2",
		"/api/v2/":                              "/api/v2",
		"/API/V2/Jobs/":                         "/api/v2/jobs",
		"/rest-server/api/v2/jobs":              "/api/v2/jobs",
		"/Rest-Server/api/v2/jobs":              "/api/v2/jobs",
		"/api/v2/jobs/Alice~Train":              "/api/v2/jobs/Alice~Train",
		"/api/v2/jobs/alice%7Etrain":            "/api/v2/jobs/alice~train",
		"/api/v2/jobs/WATCH":                    "/api/v2/jobs/watch",
		"/api/v2/jobs/watch/executiontype":      "/api/v2/jobs/watch/executionType",
		"/api/v2/groups/g/Extension/acls/Admin": "/api/v2/groups/g/extension/acls/Admin",
		"/api/v2/groups/g/extension/a/":         "/api/v2/groups/g/extension/a/",
		"/api/v2/jobs/a/nothing":                "",
		"/rest-serverx/api/v2/jobs":             "",
		"/rest-server/rest-server/api/v2/jobs":  "",
		"/":                                     "",
		"/api":                                  "",
	} {
		path, err := server.Normal(at(t, from))
		require.NoError(t, err, from)
		spelled, methods := table.Find(path)
		if want == "" {
			assert.Empty(t, methods, from)
			continue
		}
		assert.Equal(t, want, spelled, from)
		assert.NotEmpty(t, methods, from)
	}
}

func TestPathsThatOthersCouldReadInAnotherWayAreRefused(t *testing.T) {
	for _, bad := range []string{
		"/api/v2/../../prometheus", "/api/v2/./jobs", "/api//v2/jobs", "//api/v2/jobs", "/api/v2/jobs//", "/api/v2/jobs/a%2fb", "/api/v2/jobs/a%2Fb", "/api/v2/jobs/%2e%2e/users",
		"/api/v2/jobs/..%5cusers", "/api/v2/jobs/a%00", "/api/v2/jobs/a%0a", "/api/v2/jobs/a%7f", "/api/v2/jobs/a%252f", "/api/v2/jobs/%ff", "/api/v2/jobs/..", "/rest-server/../api/v2",
		"/api/v2/jobs/" + strings.Repeat("a", 2000),
	} {
		_, err := server.Normal(at(t, bad))
		assert.Error(t, err, bad)
	}
}

func FuzzNormal(f *testing.F) {
	for _, s := range []string{"/api/v2/jobs/a~b", "/API/v2/%2e%2e/x", "/rest-server/", "/a/b/../c", "/%41pi/v2"} {
		f.Add(s)
	}
	table := server.NewTable()
	table.Add("GET", "/api/v2/jobs/{job}")
	table.Add("GET", "/api/v2/groups/{group}/extension/{path...}")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(u.Path, "/") {
			return
		}
		r := &http.Request{Method: "GET", URL: u}
		path, err := server.Normal(r)
		if err != nil {
			return
		}
		for part := range strings.SplitSeq(path, "/") {
			if part == ".." || part == "." || strings.ContainsAny(part, "\\\x00%") {
				t.Fatalf("%q became %q", target, path)
			}
		}
		if strings.Contains(path, "//") {
			t.Fatalf("%q became %q", target, path)
		}
		spelled, methods := table.Find(path)
		if len(methods) > 0 && !strings.EqualFold(spelled, path) {
			t.Fatalf("%q was spelled %q", path, spelled)
		}
	})
}

func TestOnlyProxiesThatAreTrustedSayWhoAsks(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		peer    string
		headers []string
		want    string
	}{
		"a stranger's word counts nothing":        {"192.0.2.1", []string{"198.51.100.7"}, "192.0.2.1"},
		"a proxy's word counts":                   {"10.0.0.1", []string{"198.51.100.7"}, "198.51.100.7"},
		"what the client wrote before it doesn't": {"10.0.0.1", []string{"1.2.3.4, 198.51.100.7"}, "198.51.100.7"},
		"two proxies":                             {"10.0.0.1", []string{"1.2.3.4, 198.51.100.7", "10.0.0.9"}, "198.51.100.7"},
		"nonsense stops it":                       {"10.0.0.1", []string{"198.51.100.7, what"}, "10.0.0.1"},
		"nothing":                                 {"10.0.0.1", nil, "10.0.0.1"},
	} {
		got := server.Forwarded(netip.MustParseAddr(c.peer), c.headers, trusted)
		assert.Equal(t, c.want, got.String(), name)
	}
}

// A page at the path / must not match other paths.
func TestTheBareAddressIsAPath(t *testing.T) {
	s := server.New(server.Options{Routes: []server.Route{{Method: http.MethodGet, Path: "/{$}", Rule: "open", Summary: "Shows a page"}}})
	for path, want := range map[string]bool{"/": true, "/rest-server": true, "/rest-server/": true, "/view.html": false, "/a/b": false, "/%7B$%7D": false} {
		assert.Equal(t, want, s.Match(httptest.NewRequest(http.MethodGet, path, nil)) != nil, path)
	}
}
