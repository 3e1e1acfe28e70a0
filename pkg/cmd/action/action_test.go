package action

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// server is a pai-server where the user is signed in. Each request for an action returns the next state; when all states were returned, it
// returns the last state.
type server struct {
	mu      sync.Mutex
	states  []api.Action
	asked   []string // method, path and query
	sent    []map[string]any
	refusal *api.Error
	look    func() // is called before each response with the action's state
}

func start(t *testing.T, states ...api.Action) *server {
	t.Helper()
	s := &server{states: states}
	tls := httptest.NewTLSServer(s)
	t.Cleanup(tls.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": tls.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	w.Header().Set("Content-Type", "application/json")
	if s.refusal != nil {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(s.refusal)
		return
	}
	if r.Method == http.MethodPost {
		body := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.sent = append(s.sent, body)
	}
	if r.Method == http.MethodGet && r.URL.Path == "/api/v3/actions" {
		_ = json.NewEncoder(w).Encode(api.Actions{Items: s.states, Next: "1.a"})
		return
	}
	if r.Method == http.MethodGet && s.look != nil {
		s.look()
	}
	now := s.states[0]
	if len(s.states) > 1 {
		s.states = s.states[1:]
	}
	_ = json.NewEncoder(w).Encode(now)
}

func run(t *testing.T, make func(*cmdutil.Factory) *cobra.Command, args ...string) (out, errOut string, err error) {
	t.Helper()
	f := cmdutil.New("v1")
	io, _, stdout, stderr := iostreams.Test()
	f.IO = io
	cmd := make(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func aDrain(phase, message string, results ...actionsv1.Result) api.Action {
	return api.Action{Name: "drain-1", Operation: actionsv1.OperationDrain, Machine: "gpu-1", By: actionsv1.Requester{Kind: actionsv1.ByPerson, Name: "root"}, Reason: "a \x1b[31mfan",
		Created: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), Phase: phase, Message: message, Results: results}
}

func list(f *cmdutil.Factory) *cobra.Command   { return NewCmdList(f) }
func get(f *cmdutil.Factory) *cobra.Command    { return NewCmdGet(f) }
func cancel(f *cmdutil.Factory) *cobra.Command { return NewCmdCancel(f) }

func TestActionsAreListed(t *testing.T) {
	policy := aDrain("Succeeded", "dry run: it would cordon gpu-1")
	policy.By, policy.DryRun = actionsv1.Requester{Kind: actionsv1.ByPolicy, Name: "sick"}, true
	s := start(t, aDrain("New", ""), policy)
	out, errOut, err := run(t, list, "--phase", "New,acting", "--machine", "gpu-1", "--limit", "2")
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /api/v3/actions?limit=2&machine=gpu-1&phase=New&phase=acting"}, s.asked)
	assert.Regexp(t, `(?m)^NAME +DO +TARGET +BY +PHASE +AGE +MESSAGE$`, out)
	assert.Regexp(t, `(?m)^drain-1 +drain +gpu-1 +root +New +1m\S* +a .*fan$`, out)
	assert.Regexp(t, `(?m)^drain-1 +drain +gpu-1 +policy sick +Succeeded \(dry run\) +1m\S* +dry run: it would cordon gpu-1$`, out)
	assert.NotContains(t, out, "\x1b")
	assert.Equal(t, "more: --cursor 1.a\n", errOut)
	for _, args := range [][]string{{"--phase", "none"}, {"--limit", "0"}, {"--watch", "1ms"}} {
		_, _, err := run(t, list, args...)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), args)
	}
	s.refusal = &api.Error{Code: "NoAlertHandlerError", Message: "the cluster doesn't have the service alert-handler", Remedy: "paictl service start -n alert-handler"}
	_, _, err = run(t, list)
	require.ErrorContains(t, err, "the service alert-handler")
	assert.Equal(t, "paictl service start -n alert-handler", hint.Of(err))
}

func TestAnActionIsShown(t *testing.T) {
	start(t, aDrain("Acting", "2 pods of gpu-1 have to move", actionsv1.Result{Target: "pai-jobs/a", Done: true}, actionsv1.Result{Target: "pai-jobs/b", Message: "it is ending"}))
	out, _, err := run(t, get, "drain-1")
	require.NoError(t, err)
	for _, line := range []string{`Name: +drain-1`, `Operation: +drain gpu-1`, `By: +root`, `Phase: +Acting`, `Parts:`, `  pai-jobs/a   done`, `  pai-jobs/b   not done: it is ending`} {
		assert.Regexp(t, "(?m)^"+line+"$", out)
	}
	assert.NotContains(t, out, "\x1b")
	assert.NotContains(t, out, "Ended")
	out, _, err = run(t, get, "drain-1", "-o", "json")
	require.NoError(t, err)
	var a api.Action
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	assert.Len(t, a.Results, 2)
}

func TestAnActionIsCanceledWithAReason(t *testing.T) {
	was := aDrain("Noticed", "")
	was.Canceled = "not today (root)"
	s := start(t, was)
	_, _, err := run(t, cancel, "drain-1")
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	out, _, err := run(t, cancel, "drain-1", "--reason", "not today")
	require.NoError(t, err)
	assert.Equal(t, "drain-1 is canceled: not today (root)\n", out)
	assert.Equal(t, []string{"POST /api/v3/actions/drain-1/cancel"}, s.asked)
	assert.Equal(t, []map[string]any{{"reason": "not today"}}, s.sent)
}

// request returns a command that drains a machine. It checks the action without pauses.
func request(f *cmdutil.Factory) *cobra.Command {
	r := &Request{Every: time.Nanosecond}
	cmd := &cobra.Command{Use: "drain NODE", RunE: func(cmd *cobra.Command, args []string) error {
		if err := r.Check(); err != nil {
			return err
		}
		return r.Run(cmd.Context(), actionsv1.OperationDrain, args[0])
	}}
	r.AddFlags(f, cmd)
	return cmd
}

func TestARequestIsMade(t *testing.T) {
	s := start(t, aDrain("New", ""))
	out, _, err := run(t, request, "gpu-1", "--reason", "a fan", "--grace", "90s")
	require.NoError(t, err)
	assert.Equal(t, "requested to drain gpu-1: drain-1\nShow it with: paictl action get drain-1\n", out)
	assert.Equal(t, []map[string]any{{"operation": "drain", "machine": "gpu-1", "reason": "a fan", "graceSeconds": 90.}}, s.sent)
	for _, args := range [][]string{{"gpu-1"}, {"gpu-1", "--reason", " "}, {"gpu-1", "--reason", "x", "--grace", "-1s"}} {
		_, _, err := run(t, request, args...)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), args)
	}
}

func TestAResultIsAwaited(t *testing.T) {
	moves := actionsv1.Result{Target: "pai-jobs/a", Message: "its budget allows none"}
	states := []api.Action{aDrain("New", ""), aDrain("Noticed", "it will act soon"), aDrain("Noticed", "it will act soon"), aDrain("Acting", "1 pod has to move", moves)}
	start(t, append(states, aDrain("Succeeded", "gpu-1 is cordoned and has no pods to move"))...)
	out, errOut, err := run(t, request, "gpu-1", "--reason", "x", "--wait")
	require.NoError(t, err)
	assert.Equal(t, "gpu-1 is cordoned and has no pods to move\n", out)
	assert.Equal(t, `drain-1: requested to drain gpu-1
drain-1: noticed: it will act soon
drain-1: acting: 1 pod has to move; 1 pod left: pai-jobs/a (its budget allows none)
drain-1: succeeded: gpu-1 is cordoned and has no pods to move
`, errOut)

	start(t, append(states, aDrain("Refused", "root is no longer an administrator"))...)
	out, _, err = run(t, request, "gpu-1", "--reason", "x", "--wait")
	require.EqualError(t, err, "the request to drain gpu-1 was refused: root is no longer an administrator")
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(err))
	assert.Empty(t, out)

	start(t, aDrain("New", ""), aDrain("Canceled", "canceled: not today (root)"))
	_, _, err = run(t, request, "gpu-1", "--reason", "x", "--wait")
	require.EqualError(t, err, "the request to drain gpu-1 was canceled: not today (root)")

	dry := start(t, aDrain("New", ""), aDrain("Succeeded", "dry run: it would cordon gpu-1 and move 1 pod"))
	out, _, err = run(t, request, "gpu-1", "--reason", "x", "--dry-run")
	require.NoError(t, err)
	assert.Equal(t, "dry run: it would cordon gpu-1 and move 1 pod\n", out)
	assert.Equal(t, true, dry.sent[0]["dryRun"])
}

func TestAUserLearnsThatNothingTakesARequestUp(t *testing.T) {
	states := []api.Action{}
	for range undecided + 2 {
		states = append(states, aDrain("New", ""))
	}
	start(t, append(states, aDrain("Succeeded", "done"))...)
	_, errOut, err := run(t, request, "gpu-1", "--reason", "x", "--wait")
	require.NoError(t, err)
	assert.Contains(t, errOut, "paictl service status -n alert-handler")
}

func TestCtrlCLeavesTheRequest(t *testing.T) {
	s := start(t, aDrain("New", ""))
	ctx, interrupt := context.WithCancel(t.Context())
	s.look = interrupt
	f := cmdutil.New("v1")
	io, _, _, stderr := iostreams.Test()
	f.IO = io
	cmd := request(f)
	cmd.SetArgs([]string{"gpu-1", "--reason", "x", "--wait"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	assert.Equal(t, cmdutil.ExitCancelled, cmdutil.ExitCode(err))
	assert.Contains(t, stderr.String(), "The request remains. Show it with: paictl action get drain-1; withdraw it with: paictl action cancel drain-1 --reason TEXT")
	assert.NotContains(t, s.asked, "POST /api/v3/actions/drain-1/cancel")
}

func TestManyPodsAreLeft(t *testing.T) {
	var all []actionsv1.Result
	for range 7 {
		all = append(all, actionsv1.Result{Target: "pai-jobs/a"})
	}
	a := aDrain("Acting", "", all...)
	assert.Equal(t, "acting; 7 pods left: pai-jobs/a, pai-jobs/a, pai-jobs/a, pai-jobs/a, pai-jobs/a and 2 more", progress(&a))
}
