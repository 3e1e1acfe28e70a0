package settings_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTokensGoToPagesOfOtherServersAlone(t *testing.T) {
	with := func(page string) error {
		_, err := read(t, `{"names": ["gpu.example.org", "2001:db8::1"], "addresses": ["10.0.0.1"], "port": 8443, "signIn": {"returnPages": ["`+page+`"]}}`)
		return err
	}
	for _, page := range []string{"https://portal.example.org/index.html", "https://portal.example.org", "https://gpu.example.org/index.html", "https://gpu.example.org:9443/", "https://[2001:db8::2]:8443/"} {
		require.NoError(t, with(page), page)
	}
	for _, page := range []string{"https://gpu.example.org:8443/prometheus/", "https://GPU.example.org.:08443/Prometheus/", "https://10.0.0.1:8443/portal/", "https://[2001:db8:0::1]:8443/x", "https://[::ffff:10.0.0.1]:8443/x"} {
		assert.ErrorContains(t, with(page), "signIn.returnPages: ", page)
		assert.ErrorContains(t, with(page), "is a page of this server", page)
	}
	for _, page := range []string{"", "x", "/x", "//portal.example.org/", "http://portal.example.org/", "http://localhost:8123/", "javascript:x", "https:///x", "https:portal.example.org", "https://kim@portal.example.org/", "https://portal.example.org/?x=y",
		"https://portal.example.org/?", "https://portal.example.org/#x", "https://portal.example.org\\\\@evil.example.org/", "https://portal.example.org/ x", "https://p\u00f6rtal.example.org/", "https://portal.example.org/\\u0000", "https://gpu%2eexample.org:8443/"} {
		assert.ErrorContains(t, with(page), "is not of the form https://HOST/PATH", page)
	}
	assert.ErrorContains(t, with("https://portal.example.org:0/"), "no port from 1 to 65535")
}
