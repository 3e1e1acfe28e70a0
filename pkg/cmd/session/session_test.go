package session

import (
	"strings"
	"testing"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/progress"
)

func testFactory(env map[string]string) (*cmdutil.Factory, *strings.Builder) {
	io, _, _, _ := iostreams.Test()
	var err strings.Builder
	io.Err = &err
	return &cmdutil.Factory{IO: io, Getenv: func(k string) string { return env[k] }}, &err
}

// parse parses a command line with the flags of a command like "cluster up".
func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	return parseIn(t, "", args...)
}

// parseIn does the same as parse, with PAICTL_CONFIG set to a folder.
func parseIn(t *testing.T, folder string, args ...string) *Flags {
	t.Helper()
	f, _ := testFactory(map[string]string{"HOME": t.TempDir(), "PAICTL_CONFIG": folder})
	fl := &Flags{}
	root := &cobra.Command{Use: "paictl"}
	cmd := &cobra.Command{Use: "up", RunE: func(*cobra.Command, []string) error { return nil }}
	root.AddCommand(cmd)
	fl.AddConfig(cmd, f)
	fl.AddLimit(cmd)
	fl.AddConnection(cmd)
	fl.AddBundle(cmd)
	fl.AddYes(cmd, "")
	cmd.Flags().StringSlice("phases", nil, "")
	root.SetArgs(append([]string{"up"}, args...))
	require.NoError(t, root.Execute())
	return fl
}

func TestTheRetryIsWhatWasTypedWithoutTheLimit(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "paictl up"},
		{[]string{"-p", "./my cluster", "--limit", "a,b", "-y"}, "paictl up -p './my cluster' -y"},
		{[]string{"--phases", "base", "--phases=join,labels", "--yes=false"}, "paictl up --phases base,join,labels --yes=false"},
		{[]string{"node's"}, `paictl up 'node'\''s'`},
	} {
		assert.Equal(t, c.want, parse(t, c.args...).command)
	}
}

func TestTheCommandIsTypedAgainForOtherMachines(t *testing.T) {
	s := &Session{flags: parse(t, "-p", "conf", "w1", "w2", "-y")}
	assert.Equal(t, "paictl up w2 -p conf -y", s.Again([]string{"w2"}))
}

func TestTheClusterIsBroughtUpWithTheSameFolders(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"w1", "-p", "my conf"}, "paictl cluster up -p 'my conf'"},
		{[]string{"w1", "-p", "conf", "--bundle", "/media/my stick", "-y"}, "paictl cluster up -p conf --bundle '/media/my stick'"},
	} {
		s := &Session{flags: parse(t, c.args...)}
		assert.Equal(t, c.want, s.UpCommand())
	}
}

func TestTheFolderComesFromTheFlagThenTheEnvironment(t *testing.T) {
	assert.Equal(t, ".", parse(t).Dir)
	assert.Equal(t, "from-env", parseIn(t, "from-env").Dir)
	assert.Equal(t, "typed", parseIn(t, "from-env", "-p", "typed").Dir)
	t.Setenv("PAICTL_CONFIG", "past the factory")
	assert.Equal(t, ".", parse(t).Dir)
}

func TestCompletionGoesOnWithAList(t *testing.T) {
	names := []string{"base", "join", "labels"}
	assert.Equal(t, names, listCompletions(names, ""))
	assert.Equal(t, []string{"join"}, listCompletions(names, "jo"))
	assert.Equal(t, []string{"base,join", "base,labels"}, listCompletions(names, "base,"))
	assert.Equal(t, []string{"base,join,labels"}, listCompletions(names, "base,join,l"))
}

// shown is a renderer that records the events that it receives.
type shown struct {
	kinds  []string
	closed bool
}

func (s *shown) Emit(e engine.Event) { s.kinds = append(s.kinds, e.Kind) }
func (s *shown) Close() error        { s.closed = true; return nil }

func TestTheScreenIsTakenOnlyWhenTheConnectionsStand(t *testing.T) {
	r, opened := &shown{}, false
	s := &sink{open: func() progress.Renderer { opened = true; return r }, hello: func(engine.Event) {}}
	s.Emit(engine.Event{Kind: engine.EventRunStarted})
	assert.False(t, opened, "a person may still be asked about host keys")
	s.Emit(engine.Event{Kind: engine.EventPhaseStarted})
	assert.Equal(t, []string{engine.EventRunStarted, engine.EventPhaseStarted}, r.kinds)
	require.NoError(t, s.Close())
	assert.True(t, r.closed)
	s.Emit(engine.Event{Kind: engine.EventWarning})
	assert.Len(t, r.kinds, 2, "nothing is written after the end")
}

func TestDestructionIsConfirmedByTheName(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		tty, yes    bool
		want        string
		code        int
	}{
		{"the name", "pai\n", true, false, "", 0},
		{"something else", "PAI\n", true, false, `"PAI" is not "pai": not confirmed`, 1},
		{"--yes", "", false, true, "", 0},
		{"no one to ask", "pai\n", false, false, "paictl cluster down must be confirmed, but there is no terminal to ask on: add --yes", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := testFactory(nil)
			f.IO.SetTerminal(c.tty)
			f.IO.In = strings.NewReader(c.typed)
			s := &Session{f: f, flags: &Flags{Yes: c.yes, verb: "paictl cluster down"}}
			err := s.ConfirmName("This ends the cluster.", "pai")
			assert.Equal(t, c.code, cmdutil.ExitCode(err))
			if c.want != "" {
				require.EqualError(t, err, c.want)
			}
			if c.code == 1 {
				assert.Equal(t, "nothing was changed", hint.Of(err))
			}
		})
	}
}

func TestQuietTellsOnlyWarningsAndLostHosts(t *testing.T) {
	var b strings.Builder
	q := &quiet{w: &b}
	q.Emit(engine.Event{Kind: engine.EventPhaseStarted, Host: "a"})
	q.Emit(engine.Event{Kind: engine.EventNote, Message: "so much"})
	q.Emit(engine.Event{Kind: engine.EventWarning, Message: "careful", Hint: "do this"})
	q.Emit(engine.Event{Kind: engine.EventHostSetAside, Host: "b", Error: "off"})
	assert.Equal(t, "so much\nwarning: careful\n  -> do this\nb: off\n", b.String())
}
