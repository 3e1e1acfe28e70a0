package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/journal"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/runtime/sshd"
	"github.com/openpai/paictl/test/output"
	"github.com/openpai/paictl/test/runnable"
)

const patience = time.Minute

// TestMain also runs the SSH server and the git server.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "sshd":
		os.Exit(serve())
	case len(os.Args) == 4 && os.Args[1] == "repositories":
		serveRepositories(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

func serve() int {
	c, err := sshd.ReadConfig(os.Stdin)
	if err != nil {
		return 1
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the test has ended
	}()
	if err := sshd.Serve(context.Background(), l, c, func(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }); err != nil {
		return 1
	}
	return 0
}

type said struct{ output.Buffer }

func (s *said) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.String(), text) }, patience, 10*time.Millisecond, "%q", text)
}

// newRun returns the Run of a task in this process. Until the test ends, the test must not wait for children with os/exec.
func newRun(t *testing.T) (*Run, *said) {
	t.Helper()
	log := &said{}
	j := journal.Open(log, filepath.Join(t.TempDir(), "runtime.log"), time.Now)
	reaper, err := process.NewReaper()
	require.NoError(t, err)
	signals := process.Listen(t.Context(), j.Printf)
	t.Cleanup(func() {
		signals.Close()
		reaper.Stop()
		for _, pid := range servers(t) { // they would be counted in the next test
			assert.NoError(t, unix.Kill(pid, unix.SIGKILL))
			_, err := unix.Wait4(pid, nil, 0, nil)
			assert.NoError(t, err)
		}
	})
	r := &Run{
		Layout:  &env.Layout{Spec: &spec.Spec{Gang: true}, Tasks: []env.Task{{Role: "worker", Object: "worker"}}},
		Environ: os.Environ(), Home: t.TempDir(), UserHome: t.TempDir(), Dir: t.TempDir(), Grace: patience, Self: "/proc/self/exe",
		Reaper: reaper, Signals: signals, Log: j.Printf,
		Output: func() (*os.File, func(), error) {
			w := j.Writer()
			s, out, err := process.NewStream(w, &bytes.Buffer{})
			return out, func() {
				_ = out.Close()
				assert.NoError(t, s.Drain())
				w.Flush()
			}, err
		},
	}
	require.NoError(t, os.Mkdir(filepath.Join(r.Home, "runtime.d"), 0o755))
	return r, log
}

func plugins(t *testing.T, r *Run, list ...spec.Plugin) *Plugins {
	t.Helper()
	p, err := New(list, r)
	require.NoError(t, err)
	return p
}

func named(name, parameters string) spec.Plugin {
	return spec.Plugin{Name: name, Parameters: json.RawMessage(parameters)}
}

func ignored(p spec.Plugin) spec.Plugin {
	p.IgnoreFailure = true
	return p
}

func TestPluginsRunInOrderAndAfterwardsInReverse(t *testing.T) {
	r, log := newRun(t)
	p := plugins(t, r,
		named("cmd", `{"preCommands":["echo a"," echo b"],"postCommands":["echo after first"]}`),
		named("teamwise_storage", `{"whatever":[1]}`),
		named("cmd", `{"callbacks":[{"event":"taskStarts","commands":["echo c"]},{"event":"taskSucceeds","commands":["echo after second"]}]}`),
	)
	require.NoError(t, p.Pre(t.Context()))
	require.NoError(t, p.Post(t.Context()))
	var last int
	for _, line := range []string{"a", "b", "teamwise_storage does nothing", "c", "after second", "after first"} {
		at := strings.Index(log.String(), "[pai-runtime] "+line)
		require.Greater(t, at, last-1, "%s in\n%s", line, log)
		last = at
	}
}

func TestAMistakeInTheLastIsFoundBeforeTheFirstRuns(t *testing.T) {
	for name, c := range map[string]struct {
		plugin spec.Plugin
		want   string
	}{
		"no such plugin":      {named("sudo", ``), "plugin 2 (sudo): there is no such plugin"},
		"another kind":        {named("cmd", `{"preCommands":"s3cret"}`), "parameter preCommands is not a []string"},
		"no JSON":             {named("cmd", `{"preCommands":["s3cret"`), "can't be read"},
		"both ways":           {named("cmd", `{"preCommands":["s3cret"],"callbacks":[{"event":"taskStarts"}]}`), "either callbacks or"},
		"no such event":       {named("cmd", `{"callbacks":[{"event":"taskFails"}]}`), `no event "taskFails"`},
		"no port":             {named("tensorboard", `{"port":"http","logdir":{"a":"/s3cret"}}`), "can't be read"},
		"a port too large":    {named("tensorboard", `{"port":65536,"logdir":{"a":"/s3cret"}}`), "from 1 to 65535"},
		"no folder":           {named("tensorboard", `{"port":6006}`), "logdir is missing"},
		"no repository":       {named("git", `{"options":["s3cret"]}`), "repo_uri is missing"},
		"a key that is none":  {named("ssh", `{"userssh":{"type":"custom","value":"-----BEGIN OPENSSH PRIVATE KEY-----\ns3cret"}}`), "not a public key"},
		"minutes that aren't": {named("ssh", `{"sshbarrierTimeout":0}`), "number of minutes"},
		"a maybe":             {named("ssh", `{"sshbarrier":"s3cret"}`), "can't be read"},
	} {
		r := &Run{Log: t.Logf}
		_, err := New([]spec.Plugin{named("cmd", `{}`), c.plugin}, r)
		require.ErrorContains(t, err, c.want, name)
		assert.NotContains(t, err.Error(), "s3cret", name)
		var told string
		r.Log = func(format string, args ...any) { told += fmt.Sprintf(format, args...) }
		p, err := New([]spec.Plugin{named("cmd", `{}`), ignored(c.plugin)}, r)
		require.NoError(t, err, name)
		assert.Len(t, p.list, 1, name)
		assert.Contains(t, told, c.want, name)
		assert.Contains(t, told, "it is skipped", name)
	}
	for _, parameters := range []string{``, `null`, `{}`, ` `, `{"sshbarrier":null,"jobssh":null,"userssh":{"type":"none","value":"x"}}`} {
		_, err := New([]spec.Plugin{named("ssh", parameters)}, &Run{Log: t.Logf})
		require.NoError(t, err, parameters)
	}
}

func TestAPluginThatFailsEndsTheTaskUnlessItsPolicySaysOtherwise(t *testing.T) {
	r, log := newRun(t)
	fails, after := named("cmd", `{"preCommands":["exit 3"],"postCommands":["exit 4"]}`), named("cmd", `{"preCommands":["echo NEXT"],"postCommands":["echo NEXT"]}`)
	p := plugins(t, r, fails, after)
	err := p.Pre(t.Context())
	require.ErrorContains(t, err, "plugin 1 (cmd): ")
	assert.Equal(t, 3, exit.Code(err))
	assert.False(t, exit.IsRuntimeCode(err), "the failure rules interpret it")
	assert.NotContains(t, log.String(), "NEXT")
	require.ErrorContains(t, p.Post(t.Context()), "plugin 1 (cmd) after the commands")

	p = plugins(t, r, ignored(fails), after)
	require.NoError(t, p.Pre(t.Context()))
	require.NoError(t, p.Post(t.Context()))
	assert.Contains(t, log.String(), "plugin 1 (cmd): ")
	assert.Contains(t, log.String(), "continuing, because of its failurePolicy")
	assert.Contains(t, log.String(), "NEXT")
}

func TestCommandsOfAPluginStopAtTheFirstThatFails(t *testing.T) {
	r, log := newRun(t)
	for _, commands := range []string{`["false","echo NOT"]`, `["echo $NO_SUCH_VARIABLE","echo NOT"]`, `["false | cat","echo NOT"]`} {
		require.Error(t, plugins(t, r, named("cmd", `{"preCommands":`+commands+`}`)).Pre(t.Context()), commands)
	}
	assert.NotContains(t, log.String(), "NOT")
}

func TestAStopIsNoFailureOfThePlugin(t *testing.T) {
	r, log := newRun(t)
	// Signals stop the program, but the context of Pre doesn't.
	ctx := r.Signals.Context()
	p := plugins(t, r, ignored(named("cmd", `{"preCommands":["echo up; sleep 60"]}`)), named("cmd", `{"preCommands":["echo NOT"]}`))
	done := make(chan error, 1)
	go func() { done <- p.Pre(ctx) }()
	log.await(t, "up")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	err := <-done
	require.ErrorIs(t, err, process.ErrStopped)
	assert.ErrorContains(t, err, "during plugin 1 (cmd)")
	assert.Equal(t, exit.Stopped, exit.Code(err))
	assert.NotContains(t, log.String(), "NOT")
	require.ErrorContains(t, p.Pre(ctx), "before plugin 1")
}

func TestCommandsAreInAFileForTheUserOnly(t *testing.T) {
	r, log := newRun(t)
	secret := strings.Repeat("s3cret", 40_000) // longer than an argument may be
	parameters, err := json.Marshal(map[string]any{"preCommands": []string{"x=" + secret, `echo ${#x}; tr '\0' ' ' < /proc/$$/cmdline`}})
	require.NoError(t, err)
	require.NoError(t, plugins(t, r, named("cmd", string(parameters))).Pre(t.Context()))
	assert.Contains(t, log.String(), "240000")
	assert.Contains(t, log.String(), "precommands.sh")
	assert.NotContains(t, log.String(), "s3cret")
	info, err := os.Stat(filepath.Join(r.Home, "runtime.d", "precommands.sh"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode())
}

func TestWhatAPluginStartsInTheBackgroundRunsOn(t *testing.T) {
	r, log := newRun(t)
	mark := filepath.Join(t.TempDir(), "mark")
	require.NoError(t, plugins(t, r, named("cmd", fmt.Sprintf(`{"preCommands":["(until [ -e %s ]; do sleep 0.02; done; echo from behind) & echo started"]}`, mark))).Pre(t.Context()))
	assert.Contains(t, log.String(), "started")
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	log.await(t, "from behind")
}

// image adds programs to the task's image. They are links to programs of this machine, or scripts.
func image(t *testing.T, r *Run, programs map[string]string) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		if text == "" {
			require.NoError(t, os.Symlink("/bin/"+name, filepath.Join(bin, name)))
			continue
		}
		runnable.Write(t, filepath.Join(bin, name), "#!/bin/sh\n"+text)
	}
	t.Setenv("PATH", bin)
	if r != nil {
		r.Environ = env.Merge(r.Environ, []env.Var{{Name: "PATH", Value: bin}})
	}
}

func TestAnImageWithoutAShellSaysSo(t *testing.T) {
	r, _ := newRun(t)
	image(t, r, nil)
	err := plugins(t, r, named("cmd", `{"preCommands":["true"]}`)).Pre(t.Context())
	require.ErrorContains(t, err, "neither bash nor sh")
	assert.Equal(t, exit.NotFound, exit.Code(err))
	for name, want := range map[string]string{"git": "the image has no git", "tensorboard": "neither tensorboard nor python"} {
		err := plugins(t, r, named(name, `{"repo_uri":"http://127.0.0.1:1/x","port":6006,"logdir":{"a":"/a"}}`)).Pre(t.Context())
		require.ErrorContains(t, err, want)
	}
}

func TestTheShellIsTheJobsOrBashOrSh(t *testing.T) {
	text := "echo hi"
	image(t, nil, map[string]string{"bash": "", "sh": ""})
	args, script, err := Shell(nil, text)
	require.NoError(t, err)
	assert.Equal(t, []string{"-e", "-u", "-o", "pipefail"}, args[1:])
	assert.Equal(t, 1, strings.Count(script, "\n"), "line numbers stay those of the commands")
	assert.True(t, strings.HasSuffix(script, text+"\n"))

	_, script, err = Shell(nil, "cd /data\r\npython3 train.py\r")
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(script, "cd /data\npython3 train.py\n"), "the line ends of Windows: %q", script)

	chosen := []string{"python3", "-u"}
	args, script, err = Shell(chosen, text)
	require.NoError(t, err)
	assert.Equal(t, chosen, args)
	assert.Equal(t, text, script)
	_ = append(args, "file")
	assert.Len(t, chosen, 2)

	image(t, nil, map[string]string{"sh": ""})
	args, script, err = Shell(nil, text)
	require.NoError(t, err)
	assert.Equal(t, "sh", filepath.Base(args[0]))
	assert.Equal(t, []string{"-eu"}, args[1:])
	assert.Equal(t, 1, strings.Count(script, "\n"))
}

func TestAHomeThatCannotBeWrittenIsAnError(t *testing.T) {
	r, _ := newRun(t)
	r.Home = "/dev/null"
	require.Error(t, plugins(t, r, named("cmd", `{"preCommands":["true"]}`)).Pre(t.Context()))
	require.Error(t, plugins(t, r, named("git", `{"repo_uri":"http://127.0.0.1:1/x"}`)).Pre(t.Context()))
}

func TestTheVersionOfTensorboardDecidesItsOptions(t *testing.T) {
	for version, want := range map[string]int{"2.15.1": 2, "1.15.0+nv": 1, "TensorBoard 1.8.0 at http": 1, "": 2, "no number.at all": 2, strings.Repeat("9", 40) + ".1": 2} {
		t.Run(version, func(t *testing.T) {
			r, _ := newRun(t)
			image(t, r, map[string]string{"tensorboard": "echo '" + version + "'"})
			assert.Equal(t, want, tensorboardVersion(t, r))
		})
	}
	t.Run("one that fails", func(t *testing.T) {
		r, _ := newRun(t)
		image(t, r, map[string]string{"tensorboard": "echo 1.2.3; exit 1"})
		assert.Equal(t, 2, tensorboardVersion(t, r))
	})
	t.Run("one that hangs", func(t *testing.T) {
		r, _ := newRun(t)
		image(t, r, map[string]string{"tensorboard": "while :; do :; done"})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		assert.Equal(t, 2, version(ctx, r))
	})
}

func tensorboardVersion(t *testing.T, r *Run) int {
	t.Helper()
	return version(t.Context(), r)
}

func TestTensorboardRunsOnlyBesideTheFirstTask(t *testing.T) {
	r, log := newRun(t)
	image(t, r, map[string]string{"tensorboard": `[ "$1" = --version ] && echo 2.1.0 || echo called "$@"`})
	p := named("tensorboard", `{"port":6006,"logdir":{"b":"/b","a":"/a"}}`)
	r.Layout.Own = 1
	require.NoError(t, plugins(t, r, p).Pre(t.Context()))
	r.Layout.Own = 0
	require.NoError(t, plugins(t, r, p).Pre(t.Context()))
	log.await(t, "called --logdir_spec=a:/a,b:/b --port=6006 --bind_all")
	assert.Equal(t, 1, strings.Count(log.String(), "tensorboard listens"))
}

func FuzzParameters(f *testing.F) {
	for _, p := range []string{
		`{"preCommands":["true"]}`, `{"callbacks":[{"event":"taskStarts","commands":["x"]}]}`, `{"repo_uri":"https://a:b@c/d","options":["-q"]}`,
		`{"jobssh":"true","sshbarrierTimeout":"1e3","userssh":{"type":"custom","value":"x"},"jobKey":{"privateKey":"x","authorizedKeys":["y"]}}`, `{"port":"6006","logdir":{"a":"b"}}`, `null`,
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, parameters string) {
		for name := range kinds {
			p, err := New([]spec.Plugin{ignored(named(name, parameters))}, &Run{Log: func(string, ...any) {}})
			require.NoError(t, err)
			for _, e := range p.list {
				if g, ok := e.plugin.(*git); ok {
					hideLogin(g.Repo, nil)
				}
			}
		}
	})
}
