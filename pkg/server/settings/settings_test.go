package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/settings"
)

func read(t *testing.T, text string) (*settings.Settings, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return settings.Read(file)
}

func TestWhatIsntSaidHasItsDefault(t *testing.T) {
	s, err := read(t, `{"addresses": ["10.0.0.1", "10.0.0.2"], "limits": {"perMinute": 10}, "trustedProxies": ["10.0.0.0/8"]}`)
	require.NoError(t, err)
	assert.Equal(t, 10, s.Limits.PerMinute)
	assert.Equal(t, settings.Default().Limits.Streams, s.Limits.Streams)
	assert.True(t, s.SignIn.Password.Enabled)
	assert.Equal(t, "https://10.0.0.1", s.URL())
	assert.Equal(t, "10.0.0.0/8", s.TrustedProxies[0].String())
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		`{"limit": 1}`:                        `unknown field "limit"`,
		`{"tokens": {"browserHours": 0}}`:     "tokens.browserHours: 0 is less than 1",
		`{"port": 70000}`:                     "port: 70000 is not a port",
		`{"trustedProxies": ["10.0.0.0/33"]}`: "10.0.0.0/33",
		`{} {}`:                               "there is more behind them",
		``:                                    "EOF",
	} {
		_, err := read(t, text)
		assert.ErrorContains(t, err, says, text)
	}
}

func TestAddressesAreURLs(t *testing.T) {
	assert.Equal(t, "https://gpu.example.org", settings.Address("gpu.example.org", 443))
	assert.Equal(t, "https://[fd00::1]", settings.Address("fd00::1", 443))
	assert.Equal(t, "https://[fd00::1]:8443", settings.Address("fd00::1", 8443))
	assert.Equal(t, "https://10.0.0.1:8443", settings.Address("10.0.0.1", 8443))
}

func TestWhatIsBehindTheDoorIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{"prometheus": {"url": "http://prometheus:9090", "page": "monitoring", "password": true}, "off": {"url": "", "page": "monitoring"}}`: "",
		`{"api": {"url": "http://x", "page": "monitoring"}}`:                 "door.api: a name has",
		`{"Big": {"url": "http://x", "page": "monitoring"}}`:                 "door.Big: a name has",
		`{"a/b": {"url": "http://x", "page": "monitoring"}}`:                 "door.a/b: a name has",
		`{"x": {"url": "http://user:hunter2@x", "page": "monitoring"}}`:      "door.x.url must be http://HOST:PORT",
		`{"x": {"url": "file:///etc/passwd", "page": "monitoring"}}`:         "door.x.url must be http://HOST:PORT",
		`{"x": {"url": "http://x?a=b", "page": "monitoring"}}`:               "door.x.url must be http://HOST:PORT",
		`{"x": {"url": "http://x", "page": "everyone"}}`:                     `door.x.page: "everyone" is not one of`,
		`{"x": {"url": "http://x", "page": "monitoring", "header": "X-Me"}}`: `unknown field "header"`,
	} {
		_, err := read(t, `{"door": `+text+`}`)
		if want == "" {
			assert.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestTheAddressOfAlertmanagerIsChecked(t *testing.T) {
	s, err := read(t, `{"alerts": {"url": "http://alert-manager:9093", "password": true}}`)
	require.NoError(t, err)
	assert.Equal(t, settings.AlertManager{URL: "http://alert-manager:9093", Password: true}, s.Alerts)
	_, err = read(t, `{"alerts": {"url": "http://user:hunter2@alert-manager"}}`)
	require.ErrorContains(t, err, "alerts.url must be http://HOST:PORT")
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestAPublicAuthorityNeedsAPublicName(t *testing.T) {
	for text, want := range map[string]string{
		`{"names": ["gpu.example.org", "10.0.0.1", "gpu"], "acme": {"enabled": true, "acceptTerms": true, "email": "root@example.org", "directory": "https://ca.example.org/dir"}}`: "",
		`{"names": ["10.0.0.1", "gpu", "fd00::1"], "acme": {"enabled": true, "acceptTerms": true}}`:                                                                                 "names has no public name",
		`{"names": ["gpu.example.org"], "acme": {"enabled": true}}`:                                                                                                                 "acme.acceptTerms",
		`{"names": ["gpu.example.org"], "acme": {"enabled": true, "acceptTerms": true, "directory": "http://ca.example.org"}}`:                                                      "acme.directory",
		`{"names": ["gpu.example.org"], "acme": {"enabled": true, "acceptTerms": true, "email": "root"}}`:                                                                           "acme.email",
	} {
		s, err := read(t, text)
		if want != "" {
			assert.ErrorContains(t, err, want, text)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, []string{"gpu.example.org"}, s.PublicNames())
	}
}
