package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/openpai/history"
	"github.com/openpai/paictl/pkg/openpai/history/historytest"
	"github.com/openpai/paictl/pkg/version"
)

// The test binary acts as one of these programs if it is started under the program's name.
var roles = map[string]func() int{
	history.Name: func() int {
		if os.Getenv(pipeVariable) != "" {
			return run(os.Args[1:], func(context.Context, string) (database, error) { return fakeDatabase{}, nil })
		}
		return Main(os.Args[1:])
	},
	"paictl": asPaictl,
}

// pipeVariable is the environment variable with the name of a pipe. The program keeps the pipe open until it exits, and writes to it when it gives a
// part.
const pipeVariable = "PAICTL_TEST_PIPE"

// fakeDatabase contains one part. While it gives the part, it keeps a temporary folder.
type fakeDatabase struct{}

func (fakeDatabase) Close() error { return nil }

func (fakeDatabase) Read(ctx context.Context, o Options) (_ *history.Report, err error) {
	pipe, err := os.OpenFile(os.Getenv(pipeVariable), os.O_WRONLY, 0) // it is closed when the program exits
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "part-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(pipe, "gives a part")
	const size = 1 << 20 // more than a pipe holds
	return &history.Report{Jobs: 3}, o.Store(ctx, strings.NewReader(strings.Repeat("x", size)), size)
}

// asPaictl takes jobs until it is interrupted. Then it prints how the interruption ended.
func asPaictl() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := history.Open(ctx, os.Args[1], "x")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Close()
	r, err := s.Read(ctx, history.Options{Store: func(ctx context.Context, _ io.Reader, _ int64) error {
		<-ctx.Done()
		return errors.New("what the controller says")
	}})
	fmt.Println(r.Jobs, err)
	return 0
}

// role returns the path of the test binary under another name.
func role(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(self, link))
	return link
}

func TestByHandItSaysWhatItIsFor(t *testing.T) {
	program := role(t, history.Name)
	for _, args := range [][]string{nil, {"--help"}, {"serve", "x"}, {"--version", "x"}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		assert.Equal(t, 2, cmd.ProcessState.ExitCode())
		assert.Contains(t, string(out), "paictl migrate openpai --history-from")
	}
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(out), "paictl-history "+version.Version+" ("), "%s", out)
}

func TestInputThatIsNotFromPaictlIsRefused(t *testing.T) {
	greeting := &bytes.Buffer{}
	_ = history.NewConn(strings.NewReader(""), greeting).Greet("", "") // the connection ends after it
	other := &bytes.Buffer{}
	require.NoError(t, history.NewConn(nil, other).Send(&history.Message{Type: history.TypeHello, Protocol: 1, Version: "v0.0.1"}))
	message := func(m *history.Message) string {
		text := bytes.NewBuffer(bytes.Clone(greeting.Bytes()))
		require.NoError(t, history.NewConn(nil, text).Send(m))
		return text.String()
	}
	for name, c := range map[string]struct{ in, want string }{
		"nothing":               {"", "speak with paictl, which starts this program: EOF"},
		"text":                  {"select * from frameworks;\n", "bytes, which are more than"},
		"another release":       {other.String(), "paictl is of v0.0.1, and paictl-history of " + version.Version},
		"text after a greeting": {greeting.String() + "select * from frameworks;\n", "bytes, which are more than"},
		"half a message":        {greeting.String() + "\x00\x00\x00\x09{", "unexpected EOF"},
		"another message":       {message(&history.Message{Type: history.TypeTake}), `"take" instead of "open"`},
		"another variable":      {message(&history.Message{Type: history.TypeOpen, Secrets: map[string]string{"LD_PRELOAD": "x"}}), "isn't a password"},
		"no more":               {greeting.String(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, feed := io.Pipe() // it stays open, so that its end isn't the reason
			go func() {
				_, _ = io.WriteString(feed, c.in)
				if c.want == "" || strings.Contains(c.want, "EOF") {
					_ = feed.Close()
				}
			}()
			t.Cleanup(func() { _ = in.Close() })
			err := serve(t.Context(), in, io.Discard, connect)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestAddressesAreRefusedAsWithoutASecondProgram(t *testing.T) {
	const password = "hunter2-of-the-database"
	file := filepath.Join(t.TempDir(), "address")
	require.NoError(t, os.WriteFile(file, []byte("postgres://a:"+password+"@b/c"), 0o644))
	for from, want := range map[string]string{
		"postgres://a:" + password + "@b/c": "a password on the command line can be seen by others", file: "others may read " + file, "none": "no such file",
	} {
		_, err := history.Open(t.Context(), role(t, history.Name), from)
		require.ErrorContains(t, err, want)
		assert.NotEmpty(t, hint.Of(err))
		assert.NotContains(t, err.Error()+hint.Of(err), password)
	}
}

// interrupted starts paictl and the program, and calls send, which sends a signal, when a part is given. It waits until both have exited, checks
// that they have left no files, and returns the output of paictl.
func interrupted(t *testing.T, send func(paictl int) error) string {
	t.Helper()
	temporary, pipe := t.TempDir(), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.CommandContext(t.Context(), role(t, "paictl"), role(t, history.Name))
	cmd.Env = append(os.Environ(), pipeVariable+"="+pipe, "TMPDIR="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	program, err := os.Open(pipe) // which waits until the program opens it
	require.NoError(t, err)
	defer program.Close()
	line := make([]byte, len("gives a part\n"))
	_, err = io.ReadFull(program, line)
	require.NoError(t, err)
	require.NoError(t, send(cmd.Process.Pid))
	_ = cmd.Wait()
	rest, err := io.ReadAll(program)
	require.NoError(t, err)
	assert.Empty(t, rest)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
	return out.String()
}

func TestCtrlCEndsBothAndTheReportIsShown(t *testing.T) {
	said := interrupted(t, func(paictl int) error { return syscall.Kill(-paictl, syscall.SIGINT) })
	assert.Equal(t, "3 context canceled\n", said)
}

func TestTheProgramEndsWithPaictl(t *testing.T) {
	assert.Empty(t, interrupted(t, func(paictl int) error { return syscall.Kill(paictl, syscall.SIGKILL) }))
}

// taken makes the real program read a database, and adds the jobs to a history.
func taken(t *testing.T, from string, to archive.Store) (*history.Report, error) {
	t.Helper()
	s, err := history.Open(t.Context(), role(t, history.Name), from)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Read(t.Context(), history.Options{Known: func(string) bool { return false }, Store: func(ctx context.Context, part io.Reader, size int64) error {
		_, err := to.Import(ctx, part, size, false)
		return err
	}})
}

func TestTheProgramReadsARealDatabase(t *testing.T) {
	d := historytest.New(t)
	for i := range 5 {
		d.Add(historytest.Job{User: "alice", Name: fmt.Sprintf("job%d", i), VC: "vision", Submitted: epoch, GPUs: 1, Attempt: 1})
	}
	d.Add(historytest.Job{User: "bob", Name: "live", VC: "vision", Submitted: epoch, Running: true})
	whole := place(t, archive.Options{})
	o := into(whole)
	o.Now = time.Now
	direct := take(t, d, o)

	t.Setenv("HOME", t.TempDir())
	address := asOther(d)
	to := place(t, archive.Options{})
	_, err := taken(t, address, to)
	require.ErrorContains(t, err, "refuses the user")
	t.Setenv("PGPASSWORD", password)
	r, err := taken(t, address, to)
	require.NoError(t, err)
	assert.Equal(t, direct, r)
	assert.Equal(t, sums(t, whole), sums(t, to))
}
