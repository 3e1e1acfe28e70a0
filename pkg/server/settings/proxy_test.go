package settings_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesOfOtherServicesHaveAnotherOrigin(t *testing.T) {
	for _, c := range []struct{ settings, host, pages, own string }{
		{`{"addresses": ["10.0.0.1"]}`, "10.0.0.2", "https://10.0.0.2:8444", "https://10.0.0.2"},
		{`{"addresses": ["10.0.0.1"]}`, "10.0.0.2:8444", "https://10.0.0.2:8444", "https://10.0.0.2"},
		{`{"addresses": ["10.0.0.1"], "port": 8443}`, "[2001:db8::1]:8443", "https://[2001:db8::1]:8444", "https://[2001:db8::1]:8443"},
		{`{"names": ["gpu.example.org"], "proxy": {"name": "pages.example.org", "port": 8444}}`, "10.0.0.2", "https://pages.example.org:8444", "https://gpu.example.org"},
		{`{"names": ["gpu.example.org"], "proxy": {"name": "pages.example.org", "port": 443}}`, "pages.example.org", "https://pages.example.org", "https://gpu.example.org"},
		{`{"names": ["gpu.example.org"], "proxy": {"port": 0}}`, "gpu.example.org", "", "https://gpu.example.org"},
		{`{"names": ["gpu.example.org"]}`, "evil.example@x/y", "", "https://gpu.example.org"},
		{`{"names": ["gpu.example.org"]}`, "", "", "https://gpu.example.org"},
	} {
		s, err := read(t, c.settings)
		require.NoError(t, err, c.settings)
		assert.Equal(t, c.pages, s.ProxyOrigin(c.host), "%s at %q", c.settings, c.host)
		assert.Equal(t, c.own, s.OwnOrigin(c.host), "%s at %q", c.settings, c.host)
	}
	for settings, says := range map[string]string{
		`{"names": ["gpu.example.org"], "proxy": {"port": 443}}`:                                        "proxy.port: 443 is the port of the API",
		`{"names": ["gpu.example.org"], "proxy": {"port": 70000}}`:                                      "proxy.port: 70000 is not a port",
		`{"names": ["gpu.example.org"], "proxy": {"name": "GPU.example.org", "port": 443}}`:             "is a name of the server itself",
		`{"names": ["gpu.example.org"], "proxy": {"name": "10.0.0.7", "port": 443}}`:                    "is not a host name",
		`{"proxy": {"name": "pages.example.org", "port": 443}}`:                                         "no name or address to which browsers return",
		`{"names": ["gpu.example.org"], "signIn": {"returnPages": ["https://gpu.example.org:8444/x"]}}`: "is a page of this server, or of the services that it proxies",
	} {
		_, err := read(t, settings)
		assert.ErrorContains(t, err, says, settings)
	}
	s, err := read(t, `{"names": ["gpu.example.org"], "proxy": {"name": "pages.example.org", "port": 443}}`)
	require.NoError(t, err)
	assert.Contains(t, s.Hosts(), "pages.example.org", "the certificate has it")
	assert.Equal(t, []string{"gpu.example.org", "pages.example.org"}, s.PublicNames(), "a public authority signs for it, too")
}
