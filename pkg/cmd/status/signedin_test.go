package status

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// signedIn starts a server that returns seen, the part of the cluster's state that the user may see, and signs the user in there.
func signedIn(t *testing.T, seen *status.Cluster) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v3/status" {
			http.NotFound(w, r)
			return
		}
		assert.NoError(t, json.NewEncoder(w).Encode(seen))
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": server.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
}

// print runs "paictl status" with the given arguments.
func print(t *testing.T, args ...string) (string, error) {
	t.Helper()
	f := cmdutil.New("v1")
	var out bytes.Buffer
	f.IO.Out = &out
	cmd := NewCmdStatus(f, nil)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestAnAdministratorWhoSignedInSeesTheWholeCluster(t *testing.T) {
	c := &status.Cluster{Name: "lab", Machines: []status.Machine{{Name: "gpu-1", State: status.MachineNotReady}}}
	for _, name := range status.SourceNames() {
		s := status.Source{Name: name, State: status.StateCurrent}
		if name == status.SourceServices {
			s.State, s.Message, s.Hint = status.StateAbsent, "no run of paictl has published which services run", "any run publishes it"
		}
		c.Sources = append(c.Sources, s)
	}
	status.Complete(c)
	signedIn(t, c)
	out, err := print(t, "--once")
	require.ErrorIs(t, err, errUnhealthy)
	assert.Contains(t, out, "gpu-1     NotReady")
	assert.Contains(t, out, "not shown: no run of paictl has published which services run\n  -> any run publishes it\n")
	assert.Contains(t, out, "lab: unknown (https://127.0.0.1:")
	out, err = print(t, "--once", "-o", "json")
	require.ErrorIs(t, err, errUnhealthy)
	var back status.Cluster
	require.NoError(t, json.Unmarshal([]byte(out), &back))
	assert.Equal(t, "gpu-1", back.Machines[0].Name)
}

// cut returns the state of a small cluster. It contains only the parts that the user bob may see.
func cut() *status.Cluster {
	t := &status.Cutter{View: status.View{VC: func(string) bool { return true }, Names: func(user, name string) string {
		if user != "bob" {
			return ""
		}
		return user + "/" + name
	}}}
	c := statustest.Cluster(statustest.Options{Machines: 2, GPUs: 4, VirtualClusters: 1, Services: 3, Jobs: 1})
	c.Jobs[0].User, c.Jobs[0].Name, c.Jobs[0].State = "bob", "train", string(job.Running)
	for i := range c.Sources {
		if s := &c.Sources[i]; s.Name == status.SourcePrometheus {
			s.State, s.Message, s.Hint = status.StateAbsent, "no Prometheus at 10.0.0.7", "paictl service start prometheus"
		}
	}
	return t.Cut(c)
}

func TestAPersonWhoSignedInSeesTheirPart(t *testing.T) {
	c := cut()
	signedIn(t, c)
	out, err := print(t)
	require.NoError(t, err)
	assert.Contains(t, out, "jobs: 1 running, 0 waiting")
	assert.Contains(t, out, "bob/train")
	assert.Contains(t, out, c.Machines[1].Name)
	assert.Contains(t, out, "not shown: only administrators see services and alerts\n  -> ask an administrator to run: paictl status\n")
	assert.Equal(t, 1, strings.Count(out, "not shown:"), "not the part whose message is hidden:\n%s", out)
}

func TestThePollsShowWhatTheServerSaysAndThatItIsSilent(t *testing.T) {
	first := &status.Cluster{Name: "first", Sources: []status.Source{{Name: status.SourceJobs, State: status.StateCurrent}, {Name: status.SourceServices, State: status.StateAbsent}}}
	answers := make(chan error)
	p := newPolls(func(context.Context) (*status.Cluster, error) {
		if err := <-answers; err != nil {
			return nil, err
		}
		return &status.Cluster{Name: "next", Sources: first.Sources}, nil
	}, first, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	<-p.Changed()
	assert.Equal(t, "first", p.Current().Name)
	answers <- nil
	<-p.Changed()
	assert.Equal(t, "next", p.Current().Name)
	answers <- errors.New("no answer")
	<-p.Changed()
	c := p.Current()
	assert.Equal(t, [...]string{"next", status.StateStale, "no answer", status.StateAbsent}, [...]string{c.Name, c.Sources[0].State, c.Sources[0].Message, c.Sources[1].State})
	assert.Equal(t, status.StateCurrent, first.Sources[0].State, "models don't change")
	cancel()
	close(answers)
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestAPersonWhoSignedInGetsTheViewOnATerminal(t *testing.T) {
	signedIn(t, cut())
	io, _, _, _ := iostreams.Test()
	io.SetTerminal(true)
	f := cmdutil.New("v0")
	f.IO = io
	seen := ""
	opts := &StatusOptions{Factory: f, View: func(_ context.Context, _ *cmdutil.Factory, follower Following) error {
		seen = follower.Current().Jobs[0].Title()
		return nil
	}}
	cmdutil.AddOutputFlag(&cobra.Command{}, &opts.Output)
	require.NoError(t, statusRun(t.Context(), opts))
	assert.Equal(t, "bob/train", seen)
	actions, err := (&View{Factory: f}).actions(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, actions.Cordon(t.Context(), "gpu-1"), "a cordon needs a kubeconfig")
}
