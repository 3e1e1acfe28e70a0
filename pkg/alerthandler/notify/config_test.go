package notify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

const valid = `{"cluster":"demo","smtp":{"host":"mail.example.org","port":587,"tls":"starttls","ca":"","from":"pai@example.org","username":"pai"},
"webhooks":[{"name":"ops","type":"slack","events":["machines"]}],"webhookNetworks":["10.20.0.0/16"],"webhookProxy":"http://proxy:3128","administrators":["ops@example.org"],"perHour":10}`

// The configuration contains no secrets. Secrets are in files whose names are the paths of the settings.
func TestSecretsAreReadFromFiles(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notifications.smtp.password"), []byte("S3CRET\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notifications.webhooks.0.secretUrl"), []byte("https://hooks.example.org/T0KEN"), 0o600))
	c, err := Read([]byte(valid), folder)
	require.NoError(t, err)
	require.Equal(t, "S3CRET", c.SMTP.Password.Reveal())
	require.Equal(t, "https://hooks.example.org/T0KEN", c.Webhooks[0].SecretURL.Reveal())
	require.True(t, c.Enabled())
	_, err = Read([]byte(valid), "")
	require.ErrorContains(t, err, "notifications.smtp.password: a user name and a password belong together")
	require.ErrorContains(t, err, "notifications.webhooks[0].secretUrl: it is not the address of a webhook")
	_, err = Read([]byte(`{"smpt":{}}`), "")
	require.ErrorContains(t, err, "smpt")
}

func TestMistakesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // "" is right
	}{
		"nothing":                   {func(c *Config) { *c = Config{PerHour: 1} }, ""},
		"right":                     {func(*Config) {}, ""},
		"host with a port":          {func(c *Config) { c.SMTP.Host = "mail:25" }, "smtp.host"},
		"an IPv6 address":           {func(c *Config) { c.SMTP.Host = "2001:db8::1" }, ""},
		"port":                      {func(c *Config) { c.SMTP.Port = 0 }, "smtp.port"},
		"no sender":                 {func(c *Config) { c.SMTP.From = "" }, "smtp.from"},
		"two senders":               {func(c *Config) { c.SMTP.From = "a@example.org, b@example.org" }, "smtp.from"},
		"a header":                  {func(c *Config) { c.SMTP.From = "a@example.org\r\nBcc: b@example.org" }, "smtp.from"},
		"kind of encryption":        {func(c *Config) { c.SMTP.TLS = "ssl" }, "smtp.tls"},
		"password without TLS":      {func(c *Config) { c.SMTP.TLS = TLSNone }, "smtp.tls"},
		"no certificate":            {func(c *Config) { c.SMTP.CA = "x" }, "smtp.ca"},
		"no password":               {func(c *Config) { c.SMTP.Password = "" }, "smtp.password"},
		"no administrator":          {func(c *Config) { c.Administrators = []string{"Ann <ann@example.org>"} }, "administrators[0]"},
		"an administrator twice":    {func(c *Config) { c.Administrators = []string{"a@example.org", "a@example.org"} }, "administrators[1]"},
		"administrators, no server": {func(c *Config) { c.SMTP = SMTP{} }, "administrators"},
		"no network":                {func(c *Config) { c.WebhookNetworks = []string{"10.20.0.0"} }, "webhookNetworks[0]"},
		"an address as a network":   {func(c *Config) { c.WebhookNetworks = []string{"10.20.0.1/16"} }, "webhookNetworks[0]"},
		"proxy with a password":     {func(c *Config) { c.WebhookProxy = "http://a:S3CRET@proxy" }, "webhookProxy"},
		"a required notice":         {func(c *Config) { c.Required = []peoplev1.NoticeEvent{"idle"} }, "required[0]"},
		"no network of the cluster": {func(c *Config) { c.ClusterNetworks = []string{"10.244.0.0"} }, "clusterNetworks[0]"},
		"a report to no one":        {func(c *Config) { c.WeeklyReport, c.Administrators = true, nil }, "weeklyReport"},
		"limit":                     {func(c *Config) { c.PerHour = 0 }, "perHour"},
		"type":                      {func(c *Config) { c.Webhooks[0].Type = "irc" }, "webhooks[0].type"},
		"name":                      {func(c *Config) { c.Webhooks[0].Name = "A b" }, "webhooks[0].name"},
		"the same name":             {func(c *Config) { c.Webhooks = append(c.Webhooks, c.Webhooks[0]) }, "webhooks[1].name"},
		"scheme":                    {func(c *Config) { c.Webhooks[0].SecretURL = "file:///S3CRET" }, "webhooks[0].secretUrl"},
		"signature":                 {func(c *Config) { c.Webhooks[0].SigningSecret = "S3CRET" }, "webhooks[0].signingSecret"},
		"event":                     {func(c *Config) { c.Webhooks[0].Events = []Subject{"pods"} }, "webhooks[0].events[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &Config{SMTP: SMTP{Host: "mail", Port: 587, TLS: TLSStart, From: "pai@example.org", Username: "pai", Password: "S3CRET"},
				Webhooks: []Webhook{{Name: "ops", Type: TypeSlack, SecretURL: "https://hooks.example.org/S3CRET"}}, Administrators: []string{"ops@example.org"}, PerHour: 10}
			c.change(config)
			var got []string
			for _, p := range config.Check() {
				require.NotEmpty(t, p.Remedy)
				require.NotContains(t, p.Error()+p.Remedy, "S3CRET")
				got = append(got, strings.TrimPrefix(p.Path, "notifications."))
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}
