package server_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/server"
)

func TestABrowserReturnsToThisServerAlone(t *testing.T) {
	for text, want := range map[string]string{
		"/prometheus/query?g0.expr=up": "/prometheus/query?g0.expr=up",
		"/alert-manager/":              "/alert-manager/",
		"/a%20b?c=%2F%2Fd":             "/a%20b?c=%2F%2Fd",
		"":                             "", "prometheus": "", "//evil.example": "", "///evil.example": "", "/\\evil.example": "", "\\\\evil.example": "", "/\tevil": "", "/\n/evil.example": "",
		"https://evil.example": "", "https:evil.example": "", "javascript:alert(1)": "", "/%5cevil.example": "", "/a//evil.example": "", "/%2fevil.example": "", "/x\x00": "", " " + "/x": "",
		"/" + strings.Repeat("x", 3000): "",
	} {
		assert.Equal(t, want, server.Local(text), "%q", text)
	}
}

// For any text, a browser that follows the result from a page of this server stays on this server.
func FuzzLocal(f *testing.F) {
	for _, s := range []string{"/", "/a?b#c", "//x", "/\\x", "/%2f/x", "/..//x", "/;@x", "/a:b@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to := server.Local(text)
		if to == "" {
			return
		}
		base, _ := url.Parse("https://here.example/sign-in") // a constant
		u, err := base.Parse(to)
		if err != nil || u.Host != "here.example" || u.Scheme != "https" || u.User != nil || len(to) > 1 && strings.ContainsAny(to[1:2], `/\`) || strings.ContainsAny(to, "\\\r\n\t") {
			t.Fatalf("%q leads to %q: %v %v", text, to, u, err)
		}
	})
}
