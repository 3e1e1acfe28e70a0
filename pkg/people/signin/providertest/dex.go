package providertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// ClientID and ClientSecret are the credentials of the program under test. OtherClient is the ID of a second program with the same secret.
const (
	ClientID     = "paictl"
	OtherClient  = "another"
	ClientSecret = "hunter2 of the client"
)

// Issuer is a running Dex that uses a Directory.
type Issuer struct {
	// URL is the issuer's identifier, which is also its address.
	URL string
	// CA is the PEM certificate of the issuer's CA.
	CA string

	t       testing.TB
	folder  string
	program string
	process *exec.Cmd
	log     *bytes.Buffer
}

// dex returns the path of the Dex program, which "sh hack/dex.sh" builds. It skips the test if the program is missing.
func dex(t testing.TB) string {
	t.Helper()
	tier.More(t, "Dex")
	file := os.Getenv("PAICTL_TEST_OIDC")
	if file == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		built, err := filepath.Glob(filepath.Join(cache, "paictl", "tools", "dex-v*-"+runtime.Version()))
		require.NoError(t, err)
		if len(built) > 0 {
			file = built[len(built)-1]
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Skip("it needs an issuer of OpenID Connect: build one with \"sh hack/dex.sh\", and name it in PAICTL_TEST_OIDC")
	}
	return file
}

// Dex starts an issuer for the people in d. The issuer may redirect browsers to the addresses in returns. The issuer stops at the end of the test.
// Dex skips the test if the program wasn't built.
func Dex(t testing.TB, d *Directory, returns ...string) *Issuer {
	t.Helper()
	i := &Issuer{t: t, folder: t.TempDir(), program: dex(t), log: &bytes.Buffer{}}
	i.CA = certify(t, i.folder+"/cert.pem", i.folder+"/key.pem")
	address := Free(t)
	i.URL = "https://" + address + "/dex"
	settings, err := json.Marshal(map[string]any{
		"issuer": i.URL, "listen": address, "cert": i.folder + "/cert.pem", "key": i.folder + "/key.pem",
		"clients": []map[string]any{
			{"id": ClientID, "secret": ClientSecret, "redirectURIs": returns},
			{"id": OtherClient, "secret": ClientSecret, "redirectURIs": returns},
		},
		"ldap": map[string]any{
			"host": strings.TrimPrefix(d.TLS, "ldaps://"), "rootCA": d.CAFile, "bindDN": AdminDN, "bindPW": AdminPassword,
			"userSearch": map[string]any{"baseDN": "ou=people," + Base, "filter": "(objectClass=inetOrgPerson)", "username": "uid", "idAttr": "uid", "emailAttr": "mail", "nameAttr": "cn", "preferredUsernameAttr": "uid"},
			"groupSearch": map[string]any{"baseDN": "ou=groups," + Base, "filter": "(objectClass=groupOfNames)", "nameAttr": "cn",
				"userMatchers": []map[string]any{{"userAttr": "DN", "groupAttr": "member"}}},
		},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(i.folder+"/settings.json", settings, 0o600))
	i.Start()
	t.Cleanup(func() {
		i.Stop()
		if t.Failed() {
			t.Log(i.log.String())
		}
	})
	return i
}

// Start starts the issuer, also after Stop. A restart invalidates earlier tokens.
func (i *Issuer) Start() {
	i.t.Helper()
	i.process = exec.CommandContext(context.WithoutCancel(i.t.Context()), i.program, "-settings", i.folder+"/settings.json")
	i.process.Stdout, i.process.Stderr = i.log, i.log
	require.NoError(i.t, i.process.Start())
	client := &http.Client{Transport: i.transport()}
	defer client.CloseIdleConnections()
	require.Eventually(i.t, func() bool {
		r, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, i.URL+"/.well-known/openid-configuration", http.NoBody)
		require.NoError(i.t, err)
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond, "Dex answers")
}

// Stop makes the issuer unavailable.
func (i *Issuer) Stop() {
	if i.process == nil {
		return
	}
	_ = i.process.Process.Kill()
	_ = i.process.Wait()
	i.process = nil
}

func (i *Issuer) transport(more ...string) *http.Transport {
	pool := x509.NewCertPool()
	for _, ca := range append(more, i.CA) {
		pool.AppendCertsFromPEM([]byte(ca))
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
}

// Browser simulates the browser of a person who signs in at the issuer.
type Browser struct {
	*http.Client
	issuer *Issuer
}

// Browser returns a Browser that trusts the CA of the issuer and the additional CAs. It doesn't follow redirects by itself.
func (i *Issuer) Browser(more ...string) *Browser {
	jar, err := cookiejar.New(nil)
	require.NoError(i.t, err)
	transport := i.transport(more...)
	i.t.Cleanup(transport.CloseIdleConnections)
	return &Browser{&http.Client{Transport: transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, i}
}

var action = regexp.MustCompile(`action="([^"]*)"`)

// SignIn opens an address of the issuer, and enters a name and the password. It returns the address to which the issuer redirects the browser.
func (b *Browser) SignIn(address, name string) string {
	t := b.issuer.t
	t.Helper()
	for range 10 {
		to, page := b.Visit(address)
		if page == "" {
			if !strings.HasPrefix(to, b.issuer.URL) {
				return to
			}
			address = to
			continue
		}
		form := action.FindStringSubmatch(page)
		require.NotEmpty(t, form, "a form of the issuer: %s", page)
		at, err := url.Parse(address)
		require.NoError(t, err)
		at, err = at.Parse(strings.ReplaceAll(form[1], "&amp;", "&"))
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.String(), strings.NewReader(url.Values{"login": {name}, "password": {Password}}.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := b.Do(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, http.StatusSeeOther, resp.StatusCode, "the issuer takes the password")
		next, err := resp.Location()
		require.NoError(t, err)
		if address = next.String(); !strings.HasPrefix(address, b.issuer.URL) {
			return address
		}
	}
	t.Fatal("the issuer redirects without end")
	return ""
}

// Visit opens an address. It returns the address of a redirect, or the text of the page.
func (b *Browser) Visit(address string) (to, page string) {
	t := b.issuer.t
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/html")
	resp, err := b.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	if next, err := resp.Location(); err == nil {
		return next.String(), ""
	}
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return "", string(text)
}
