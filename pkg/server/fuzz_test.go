package server_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/openpai/paictl/pkg/server"
)

// Only a trusted proxy can set the address of a client. The result is always a valid address.
func FuzzForwarded(f *testing.F) {
	for _, s := range []string{"1.2.3.4", "1.2.3.4, 10.0.0.9", "x, 10.0.0.9", "[::1]:80", "fe80::1%eth0", ",,,", "10.0.0.1,10.0.0.2", "\x00"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	near, far := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.1")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, header string, proxy bool) {
		peer := far
		if proxy {
			peer = near
		}
		got := server.Forwarded(peer, []string{header}, trusted)
		if !got.IsValid() || !proxy && got != far {
			t.Fatalf("%q from %s counts as %s", header, peer, got)
		}
	})
}

// The logged query contains no value that could be secret, and no line break.
func FuzzShownQuery(f *testing.F) {
	for _, s := range []string{"token=hunter-7391", "limit=1&code=hunter-7391", "a;b=hunter-7391", "limit=%zz", "=hunter-7391", "x=1&x=hunter-7391"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, key := range []string{"token", "code", "password", "Token", "limit2", "to"} {
			shown := server.ShownQuery(key + "=hunter-7391&" + query)
			if strings.Contains(shown, "hunter-7391") && !strings.Contains(query, "7391") {
				t.Fatalf("%q shows a secret: %q", query, shown)
			}
		}
	})
}

// The table returns only paths of its routes. A returned path begins like the requested path, ignoring case.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"/api/v2/jobs", "/API/v2/jobs/x/", "/api/v2/groups/g/extension/a/b/", "/api/v2//jobs", "/", "/api/v2/jobs/ſ", "/api/v2/jobs/K"} {
		f.Add(s)
	}
	table := server.NewTable()
	for _, path := range []string{"/api/v2/jobs", "/api/v2/jobs/{job}", "/api/v2/jobs/watch", "/api/v2/groups/{group}/extension/{path...}", "/prometheus", "/prometheus/{path...}"} {
		table.Add(http.MethodGet, path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		spelled, methods := table.Find(path)
		if len(methods) == 0 {
			return
		}
		if again, _ := table.Find(spelled); again != spelled || !strings.EqualFold(strings.Trim(spelled, "/"), strings.Trim(path, "/")) {
			t.Fatalf("%q is spelled %q, and that %q", path, spelled, again)
		}
	})
}
