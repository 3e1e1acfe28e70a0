package parity

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// growing collects the output of a running command.
type growing struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *growing) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

// last returns the table that was printed last, with placeholders for times.
func (g *growing) last() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := g.text.String()
	return passing.ReplaceAllString(text[max(0, strings.LastIndex(text, "NAME")):], "TIME")
}

// watching runs "paictl job list --watch" until the test calls end. end returns the error of the command.
func (b *both) watching(t *testing.T, args []string, env ...string) (out *growing, end func() error) {
	t.Helper()
	out = &growing{}
	c := exec.CommandContext(t.Context(), "paictl", append([]string{"job", "list", "--watch", "1s"}, args...)...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	c.Stdout, c.Stderr = out, out
	require.NoError(t, c.Start())
	return out, func() error {
		_ = c.Process.Signal(os.Interrupt)
		return c.Wait()
	}
}

func TestAListThatIsWatchedShowsTheSameBothWays(t *testing.T) {
	b := open(t)
	b.signIn("wil", "team")
	own := b.server.Client.Transport.(*http.Transport).Clone() // connections are cut below, and not its own
	own.DisableKeepAlives = true
	b.server.Client = &http.Client{Transport: own}
	token := b.server.SignIn("wil")
	submit := func(name string) {
		t.Helper()
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // jobs of one second have no order
		a := b.server.Submit(token, name, "default")
		require.Equal(t, 202, a.Status, a.Body)
	}
	submit("one")
	for name, args := range map[string][]string{"all": nil, "waiting": {"--state", "waiting"}, "newest": {"--limit", "1"}, "a part": {"--keyword", "tw"}} {
		t.Run(name, func(t *testing.T) {
			here, endHere := b.watching(t, args, "KUBECONFIG="+b.kubeconfig, "PAICTL_USER=wil")
			there, endThere := b.watching(t, args, "XDG_CONFIG_HOME="+b.home, "PAICTL_SERVER=wil")
			same := func(what string, has string) {
				b.server.Eventually(what, func() bool { return strings.Contains(here.last(), has) && here.last() == there.last() })
			}
			if name != "a part" && name != "newest" {
				same("the list", "one")
			}
			job := "two-" + strings.ReplaceAll(name, " ", "-")
			submit(job)
			same("a new job", job)
			b.server.TLS.CloseClientConnections()
			submit(job + "-b")
			same("a job that came while there was no connection", job+"-b")
			stop := b.server.Do("POST", "/api/v3/jobs/wil/"+job+"-b/stop", token, "")
			require.Equal(t, 200, stop.Status, stop.Body)
			b.server.Eventually("a job that changes", func() bool {
				if name == "waiting" {
					return !strings.Contains(here.last(), job+"-b") && here.last() == there.last()
				}
				return strings.Contains(here.last(), "stopping") && here.last() == there.last()
			})
			require.NoError(t, endHere())
			require.NoError(t, endThere())
		})
	}
	printed := b.server.Printed.String()
	assert.Contains(t, printed, `"path":"/api/v3/jobs/watch"`)
	assert.NotContains(t, printed, `"path":"/api/v3/jobs","status":200`, "no list is asked for again and again")
}
