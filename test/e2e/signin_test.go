package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/people/signin/providertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/test/runnable"
)

// sitesOwn is a cluster whose people sign in with a site's own providers. The providers are a directory, and an issuer of OpenID Connect that uses
// this directory. They run outside the cluster.
type sitesOwn struct {
	*jobs
	*accounts
	directory *providertest.Directory
	issuer    *providertest.Issuer
}

// accounts are people without a kubeconfig who use the cluster's server. Each person has a separate machine.
type accounts struct {
	t                   *testing.T
	server, fingerprint string
	homes               map[string]string
}

// signInByProviders lets two people sign in: kim with a browser on her machine and with a code, and lee with the password of the directory. A group
// of the directory lets both use a virtual cluster, as long as they are members of the group.
func (j *jobs) signInByProviders(t *testing.T) {
	o := j.providers(t)
	defer j.run(0, "stop", "-n", "rest-server")

	o.login("lee", providertest.Password, "--user", "lee")
	assert.Equal(t, []string{"of-the-lab"}, o.whoami("lee").Groups)

	b := o.issuer.Browser(o.authority("lee"))
	o.byCode(b)
	assert.Equal(t, "kim", o.whoami("kim").Name)
	assert.Equal(t, []string{"of-the-lab"}, o.whoami("kim").Groups)
	o.may("kim", "job", "submit", example(t, "hello"), "--watch", "--timeout", "3m")
	o.may("kim", "logout")
	assert.NotZero(t, o.as("kim", "", "job", "list").code)
	o.byBrowser(b)
	assert.Contains(t, o.may("kim", "job", "list"), "hello")
	assert.NotContains(t, o.may("lee", "job", "list", "-A"), "hello")

	o.directory.Leave("ai-team", "kim")
	eventually(t, time.Minute, "the group that she has left there grants nothing", func() bool { return len(o.whoami("kim").Groups) == 0 })
	assert.Equal(t, []string{"of-the-lab"}, o.whoami("lee").Groups)
	r := o.as("kim", "", "job", "submit", example(t, "hello"))
	assert.NotZero(t, r.code)
	assert.Contains(t, r.stderr, "virtual cluster")
	o.directory.Remove("lee")
	eventually(t, time.Minute, "who is removed there is signed out", func() bool { return o.as("lee", "", "whoami").code != 0 })
	for _, secret := range []string{providertest.AdminPassword, providertest.ClientSecret, providertest.Password} {
		assert.NotContains(t, j.kubectl("-n pai-system logs -l app=rest-server --tail=-1"), secret)
		assert.NotContains(t, j.kubectl("get configmaps -A -o yaml"), secret)
	}
}

// providers starts both providers, and the server with settings for them.
func (j *jobs) providers(t *testing.T) *sitesOwn {
	t.Helper()
	providertest.Host = j.gateway()
	people := &accounts{t: t, server: "https://" + j.address(0), homes: map[string]string{"kim": t.TempDir(), "lee": t.TempDir()}}
	o := &sitesOwn{jobs: j, accounts: people, directory: providertest.Slapd(t)}
	o.issuer = providertest.Dex(t, o.directory, o.server+"/api/v3/signin/oidc/dex/return")
	j.set("rest-server", map[string]any{"signIn": map[string]any{
		"oidc": map[string]any{"dex": map[string]any{"title": "The lab", "issuer": o.issuer.URL, "ca": o.issuer.CA, "clientId": providertest.ClientID, "clientSecret": providertest.ClientSecret,
			"scopes": []string{"profile", "email", "groups", "offline_access"}, "newPeople": "add", "newGroups": []string{}}},
		"ldap": map[string]any{"lab": map[string]any{"url": o.directory.TLS, "ca": o.directory.CA, "bindDN": providertest.AdminDN, "bindPassword": providertest.AdminPassword,
			"users": map[string]any{"base": "ou=people," + providertest.Base}, "groups": map[string]any{"base": "ou=groups," + providertest.Base}, "newPeople": "add", "newGroups": []string{}}},
	}})
	j.push()
	started := ok(t, j.args("service", "start", "-n", "rest-server")...)
	o.fingerprint = regexp.MustCompile(`[0-9A-F]{2}(:[0-9A-F]{2}){31}`).FindString(started.stdout + started.stderr)
	require.NotEmpty(t, o.fingerprint, started)
	ok(t, j.args("group", "add", "of-the-lab", "--vc", "default", "--external", "dex/ai-team", "--external", "lab/ai-team")...)
	return o
}

// as runs paictl as a person on that person's machine.
func (a *accounts) as(who, stdin string, args ...string) result {
	a.t.Helper()
	cmd, out, said := command(a.t.Context(), a.t, args...)
	cmd.Env = append(cmd.Env, "HOME="+a.homes[who], "XDG_CONFIG_HOME="+a.homes[who], "KUBECONFIG="+a.homes[who]+"/none")
	cmd.Stdin = strings.NewReader(stdin)
	_ = cmd.Run() // the code says it
	return result{stdout: out.String(), stderr: said.String(), code: cmd.ProcessState.ExitCode()}
}

func (a *accounts) may(who string, args ...string) string {
	a.t.Helper()
	r := a.as(who, "", args...)
	require.Equal(a.t, 0, r.code, "%s: paictl %s: %s", who, strings.Join(args, " "), r)
	return r.stdout
}

func (a *accounts) login(who, stdin string, flags ...string) {
	a.t.Helper()
	r := a.as(who, stdin+"\n", append([]string{"login", a.server, "--name", "lab", "--fingerprint", a.fingerprint}, flags...)...)
	require.Equal(a.t, 0, r.code, "%s: %s", who, r)
}

// authority returns the PEM of the server's CA that paictl has stored for a person.
func (o *sitesOwn) authority(who string) string {
	o.t.Helper()
	var kept struct {
		Clusters map[string]struct {
			CA string `yaml:"ca"`
		} `yaml:"clusters"`
	}
	require.NoError(o.t, yaml.Unmarshal([]byte(read(o.t, o.homes[who]+"/paictl/clusters.yaml")), &kept))
	require.NotEmpty(o.t, kept.Clusters["lab"].CA)
	return kept.Clusters["lab"].CA
}

func (o *sitesOwn) whoami(who string) (out api.WhoAmI) {
	o.t.Helper()
	require.NoError(o.t, json.Unmarshal([]byte(o.may(who, "whoami", "-o", "json")), &out))
	return out
}

// background starts "paictl login" in a terminal. It returns the output, and a function that waits for the end.
func (o *sitesOwn) background(env []string, flags ...string) (said *output, end func()) {
	o.t.Helper()
	cmd, _, _ := command(o.t.Context(), o.t, append([]string{"login", o.server, "--name", "lab", "--fingerprint", o.fingerprint}, flags...)...)
	cmd.Path, cmd.Args = "/usr/bin/script", []string{"script", "-qec", strings.Join(cmd.Args, " "), "/dev/null"}
	said = &output{}
	cmd.Stdout, cmd.Stderr = said, said
	home := o.homes["kim"]
	cmd.Env = append(append(cmd.Env, "HOME="+home, "XDG_CONFIG_HOME="+home, "KUBECONFIG="+home+"/none"), env...)
	require.NoError(o.t, cmd.Start())
	return said, func() { require.NoError(o.t, cmd.Wait(), "%s", said) }
}

// post sends a request in the way that a page of the server does, and returns the response.
func (o *sitesOwn) post(b *providertest.Browser, path string, body any) map[string]any {
	o.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(o.t, err)
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.server+path, strings.NewReader(string(text)))
	require.NoError(o.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := b.Do(r)
	require.NoError(o.t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(o.t, err)
	require.Equal(o.t, http.StatusOK, resp.StatusCode, "%s: %s", path, answer)
	out := map[string]any{}
	require.NoError(o.t, json.Unmarshal(answer, &out), string(answer))
	return out
}

var (
	shownCode = regexp.MustCompile(`(?m)^\s+([B-Z]{4}-[B-Z]{4})\r?$`)
	approval  = regexp.MustCompile(`data-approval="([^"]+)"`)
)

// byCode signs in kim with a code that she enters in a browser on another machine.
func (o *sitesOwn) byCode(b *providertest.Browser) {
	o.t.Helper()
	said, end := o.background(nil, "--device")
	eventually(o.t, time.Minute, "a code is shown", func() bool { return shownCode.MatchString(said.String()) })
	code := shownCode.FindStringSubmatch(said.String())[1]
	answer := o.post(b, "/api/v3/signin/oidc/dex", map[string]any{"device": code})
	_, page := b.Visit(b.SignIn(answer["to"].(string), "kim"))
	got := approval.FindStringSubmatch(page)
	require.NotEmpty(o.t, got, page)
	o.post(b, "/api/v3/signin/approval", map[string]any{"approval": got[1], "allow": true})
	end()
}

// byBrowser signs in kim with a browser that paictl opens.
func (o *sitesOwn) byBrowser(b *providertest.Browser) {
	o.t.Helper()
	bin, opened := o.t.TempDir(), filepath.Join(o.t.TempDir(), "address")
	runnable.Write(o.t, filepath.Join(bin, "xdg-open"), "#!/bin/sh\nprintf %s \"$1\" >"+opened+".new && mv "+opened+".new "+opened+"\n")
	_, end := o.background([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "DISPLAY=:7", "CI=", "SSH_CONNECTION="})
	eventually(o.t, time.Minute, "a browser is opened", func() bool { _, err := os.Stat(opened); return err == nil })
	page, err := url.Parse(read(o.t, opened))
	require.NoError(o.t, err)
	_, text := b.Visit(page.String())
	require.Contains(o.t, text, "<html", "the page of the server")
	q := page.Query()
	answer := o.post(b, "/api/v3/signin/oidc/dex", api.Goal{Program: &api.Program{Redirect: q.Get("redirect_uri"), State: q.Get("state"), Challenge: q.Get("code_challenge"), Client: q.Get("client_id")}})
	to, _ := b.Visit(b.SignIn(answer["to"].(string), "kim"))
	require.True(o.t, strings.HasPrefix(to, "http://127.0.0.1:"), to)
	_, text = b.Visit(to)
	assert.Contains(o.t, text, "You can close this page")
	end()
}
