// Package parity runs the scripts of "paictl job" a second time through a server, and compares the output with the output through a kubeconfig.
// In: the scripts of pkg/cmd/job, a server on a real API server. Out: the differences.
package parity

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/test/programs"
)

func TestMain(m *testing.M) {
	cmdtest.Main(cleaned{kubetest.Wrap(m)}, func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // as in cmd/paictl
		context.AfterFunc(ctx, stop)
		os.Exit(cmd.Main(ctx, cmdutil.New("v0.0.0-test"), os.Args[1:]))
	})
}

// cleaned runs the tests, and removes the built programs afterwards.
type cleaned struct{ kubetest.M }

// Run runs the tests, and returns the exit code.
func (m cleaned) Run() int {
	defer programs.Clean()
	return m.M.Run()
}

// history responds in place of the job controller, as in the other run of the scripts.
func history(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case jobtest.RefusesLists(w, r), jobtest.TakesRecords(w, r):
	case r.URL.Path == "/v1/jobs":
		fmt.Fprint(w, `{"items":[]}`)
	case r.URL.Path == "/v1/usage" && r.URL.Query().Get("user") == "nobody":
		fmt.Fprint(w, `{"since":"2026-01-01T00:00:00Z","until":"2026-01-11T00:00:00Z","items":[],"total":{}}`)
	case r.URL.Path == "/v1/usage":
		fmt.Fprintf(w, `{"since":"2026-01-01T00:00:00Z","until":"2026-01-11T00:00:00Z","items":[
			{"virtualCluster":"speech","user":"%[1]s","guaranteedSeconds":0,"opportunisticSeconds":36000,"preemptedSeconds":3600,"failedSeconds":0},
			{"virtualCluster":"vision","user":"%[1]s","guaranteedSeconds":432000,"opportunisticSeconds":0,"preemptedSeconds":0,"failedSeconds":1800}],
			"total":{"guaranteedSeconds":432000,"opportunisticSeconds":36000,"preemptedSeconds":3600,"failedSeconds":1800}}`, r.URL.Query().Get("by"))
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"NotFound","message":"no such job"}`)
	}
}

func scheduler(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/virtualclusters" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"items":[{"name":"vision","guaranteed":2}]}`)
}

// both is a cluster that can be used in two ways: through the server, and with a kubeconfig.
type both struct {
	t       *testing.T
	cluster *kube.Cluster
	server  *servertest.Server
	// home is the folder with the sessions of people who are signed in. kubeconfig is the file for the other way.
	home, kubeconfig string
}

func open(t *testing.T) *both {
	t.Helper()
	return openWith(t, servertest.Options{History: http.HandlerFunc(history), Scheduler: http.HandlerFunc(scheduler)})
}

func openWith(t *testing.T, o servertest.Options) *both {
	t.Helper()
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	d, err := people.Open(cluster.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	b := &both{t: t, cluster: cluster, home: t.TempDir(), server: servertest.Start(t, cluster, o)}
	b.kubeconfig = jobtest.Front(t, cluster, jobtest.Services{api.Service: b.server.History, "scheduler": http.HandlerFunc(scheduler)})
	b.server.Group("team", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "default"}} })
	b.server.Group("operators", func(g *v1.GroupSpec) { g.Administrator = true })
	return b
}

// signIn signs in a person. The cluster in home has the name of the person.
func (b *both) signIn(name string, groups ...string) {
	b.t.Helper()
	b.server.Person(name, groups...)
	b.server.Login(b.home, name)
}

const scripts = "../../pkg/cmd/job/testdata/server/"

func TestTheScriptsOfPaictlJobPassForWhoeverSignedIn(t *testing.T) {
	b := open(t)
	garbage := filepath.Join(t.TempDir(), "garbage.yaml")
	require.NoError(t, os.WriteFile(garbage, bytes.Repeat([]byte{7}, 1<<20), 0o600))
	t.Run("scripts", func(t *testing.T) { // which run side by side
		b.scripts(t, garbage)
	})
	b.same("ann")
}

func (b *both) scripts(t *testing.T, garbage string) {
	for name, c := range map[string]struct{ user, group string }{"life": {"ann", "team"}, "run": {"ida", "team"}, "usage": {"root", "operators"}} {
		b.signIn(c.user, c.group)
		cmdtest.RunFiles(t, []string{scripts + name + ".txtar"}, map[string]string{"XDG_CONFIG_HOME": b.home, "PAICTL_SERVER": c.user, "GARBAGE": garbage})
	}
}

// passing matches times, which differ between two runs, and the spaces that align the next column.
var passing = regexp.MustCompile(`(\b(\d+(ms|s|m|h))+\b( ago)?|\d\d:\d\d:\d\d) *`)

// same compares the outputs of the two ways about the jobs that a script has created.
func (b *both) same(user string) {
	run := func(args []string, env ...string) string {
		return passing.ReplaceAllString(b.print(args, env...), "TIME ")
	}
	for _, line := range []string{
		"job list", "job list -o wide", "job list -o json", "job list -o name --state waiting", "job list --keyword lat", "job list --limit 1",
		"job get train", "job get train -o json", "job get train -o yaml", "job get later", "job get nobody", "job get nobody/train", "job get train --config",
		"job why train", "job why later -o json", "job events train", "job clone train", "job clone later --as x",
		"job logs train", "job logs train --role nobody", "job exec train -- true", "job exec train --task 9 -- true", "job top train", "job port-forward train 1",
		"job submit nofile.yaml", "job stop train", "job scale train", "job scale later --tasks 2",
		"job wait train --timeout 1s", "__complete job get ''",
	} {
		args := strings.Fields(strings.ReplaceAll(line, "''", ""))
		if strings.HasSuffix(line, "''") {
			args = append(args, "")
		}
		here := run(args, "KUBECONFIG="+b.kubeconfig, "PAICTL_USER="+user)
		there := run(args, "XDG_CONFIG_HOME="+b.home, "PAICTL_SERVER="+user)
		assert.Equal(b.t, here, there, line)
	}
}

// print returns the output of a command, and the error with which the command has ended.
func (b *both) print(args []string, env ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "paictl", args...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.t.TempDir()}, env...)
	out, err := c.CombinedOutput()
	return fmt.Sprintf("%s%v\n", out, err)
}

func TestSigningInAndOut(t *testing.T) {
	b := open(t)
	b.server.Person("eve", "team")
	b.server.Person("root", "operators")
	answer := b.server.Submit(b.server.SignIn("root"), "hidden", "default")
	require.Equal(t, http.StatusAccepted, answer.Status, answer.Body)
	shown, err := client.UntrustedCertificate(t.Context(), mustParse(t, b.server.URL))
	require.NoError(t, err)
	require.NotNil(t, shown)
	waiting := func() *v3.Device {
		a := b.server.Do(http.MethodPost, v3.DevicePath, "", "client_id=nightly%1b%5b2J%0aaddress:+10.0.0.1", "Content-Type", "application/x-www-form-urlencoded")
		require.Equal(t, http.StatusOK, a.Status, a.Body)
		d := &v3.Device{}
		a.Into(d)
		return d
	}
	first, second := waiting(), waiting()
	eve, err := b.server.People.Person("eve")
	require.NoError(t, err)
	application, err := b.server.Tokens.Application(t.Context(), eve, token.New{})
	require.NoError(t, err)
	t.Run("script", func(t *testing.T) { // which runs beside others
		cmdtest.RunFiles(t, []string{"testdata/login.txtar"}, map[string]string{"URL": b.server.URL, "FINGERPRINT": shown.Fingerprint(), "CODE": first.UserCode, "OTHER": second.UserCode, "APPLICATION": application.Token.Reveal()})
	})
	for d, want := range map[*v3.Device]int{first: http.StatusOK, second: http.StatusBadRequest} {
		form := url.Values{"grant_type": {v3.GrantDevice}, "device_code": {d.DeviceCode}}
		a := b.server.Do(http.MethodPost, "/oauth/token", "", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		assert.Equal(t, want, a.Status, a.Body)
		if want == http.StatusOK {
			made := &v3.Tokens{}
			a.Into(made)
			assert.Contains(t, b.server.Do(http.MethodGet, "/api/v3/whoami", made.AccessToken, "").Body, `"name":"eve"`)
		} else {
			assert.Contains(t, a.Body, "access_denied")
		}
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := client.ParseURL(text)
	require.NoError(t, err)
	return u
}
