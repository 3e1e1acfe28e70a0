package job

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
)

func TestACommandOnManyJobsHasOneClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: test, contexts: [{name: test, context: {cluster: test, user: test}}], users: [{name: test, user: {}}], clusters: [{name: test, cluster: {server: "http://127.0.0.1:1"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	f, fl := cmdutil.New("v1"), &Flags{}
	first, err := fl.open(f)
	require.NoError(t, err)
	second, err := fl.open(f)
	require.NoError(t, err)
	assert.Same(t, first, second)
}

// stops starts a server where bob is signed in, and returns the number of stop requests that the server receives. The server responds to the
// requests only when it has received the requests for all names. It rejects the request for "two".
func stops(t *testing.T, names ...string) (stopped *atomic.Int32) {
	t.Helper()
	stopped = &atomic.Int32{}
	all := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		path, mine := strings.CutPrefix(r.URL.Path, "/api/v3/jobs/bob/")
		name, what, _ := strings.Cut(path, "/")
		switch {
		case mine && what == "brief":
			assert.NoError(t, json.NewEncoder(w).Encode(job.Job{User: "bob", Name: name, Live: true, State: job.Running}))
		case mine && what == "stop":
			if int(stopped.Add(1)) == len(names) {
				close(all)
			}
			select {
			case <-all:
			case <-r.Context().Done():
			}
			if name == "two" {
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, `{"code":"ConflictJobError","message":"two is being changed"}`)
				return
			}
			assert.NoError(t, json.NewEncoder(w).Encode(v3.Changed{Before: job.Running}))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": server.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
	return stopped
}

func TestJobsAreStoppedAtOnceAndReportedInTheirOrder(t *testing.T) {
	names := []string{"one", "two", "three", "four"}
	stopped := stops(t, names...)
	f := cmdutil.New("v1")
	var out bytes.Buffer
	f.IO.Err = &out
	err := stopRun(t.Context(), &StopOptions{Several: Several{Factory: f, Flags: Flags{User: "bob"}, Names: names}})
	code, ok := errors.AsType[*cmdutil.CodeError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, cmdutil.ExitPartial, code.Code)
	text := out.String()
	at := func(words string) int {
		assert.Contains(t, text, words)
		return strings.Index(text, words)
	}
	assert.IsIncreasing(t, []int{at("bob/one is stopping"), at("two is being changed"), at("bob/three is stopping"), at("bob/four is stopping")})
	assert.EqualValues(t, 4, stopped.Load())
}

func TestNoJobIsStoppedIfANameIsInvalid(t *testing.T) {
	stopped := stops(t, "one")
	err := stopRun(t.Context(), &StopOptions{Several: Several{Factory: cmdutil.New("v1"), Flags: Flags{User: "bob"}, Names: []string{"one", "a~b~c/d"}}})
	require.Error(t, err)
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	assert.Zero(t, stopped.Load())
}
