package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/test/output"
)

func reaper(t *testing.T) *process.Reaper {
	t.Helper()
	r, err := process.NewReaper()
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	return r
}

type host struct {
	reaper  *process.Reaper
	signals *process.Signals
	said    output.Buffer
	out     output.Buffer
	lines   chan string
	stream  *process.Stream
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{reaper: reaper(t), lines: make(chan string, 100)}
	h.signals = process.Listen(t.Context(), func(f string, a ...any) { fmt.Fprintf(&h.said, f+"\n", a...) })
	t.Cleanup(func() { h.signals.Close() })
	return h
}

// start runs a script with sh. It sends each printed line to h.lines.
func (h *host) start(t *testing.T, script string) *process.Process {
	t.Helper()
	s, w, err := process.NewStream(&h.out, lineWriter(h.lines))
	require.NoError(t, err)
	p, err := h.reaper.Start(process.Command{Args: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: w, Stderr: w})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	h.stream = s
	t.Cleanup(func() {
		_ = p.Signal(unix.SIGKILL)
		_ = s.Close()
	})
	return p
}

// await waits until a line was printed. It skips other lines, because shells may report killed processes.
func (h *host) await(t *testing.T, line string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case got := <-h.lines:
			if got == line {
				return
			}
		case <-limit:
			require.FailNow(t, "it didn't come", "%q", line)
		}
	}
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		w <- strings.TrimSpace(line)
	}
	return len(p), nil
}

func TestExitCodesAreThoseOfShells(t *testing.T) {
	h := newHost(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -9 $$": 137, "kill -SEGV $$": 139} {
		assert.Equal(t, process.Outcome{Code: want}, h.signals.Supervise(h.start(t, script), time.Second), script)
	}
}

func TestAProgramThatCannotBeStartedSaysWhy(t *testing.T) {
	r := reaper(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for _, c := range []struct {
		command process.Command
		code    int
		want    string
	}{
		{process.Command{Args: []string{"no-such-program"}}, 127, "no-such-program: command not found"},
		{process.Command{Args: []string{write("plain", "text", 0o644)}}, 126, "permission denied"},
		{process.Command{Args: []string{write("nothing", "\x01\x02", 0o755)}}, 126, "not a program for this architecture"},
		{process.Command{Args: []string{write("lost", "#!/no/interpreter\n", 0o755)}}, 127, "loader or interpreter is missing"},
		{process.Command{Args: []string{"sh"}, Dir: "/no/folder"}, 126, "no such folder"},
		{process.Command{Args: []string{"true", strings.Repeat("x", 200<<10)}}, 126, "larger than Linux allows"},
	} {
		_, err := r.Start(c.command)
		require.ErrorContains(t, err, c.want)
		assert.Equal(t, c.code, exit.Code(err))
		assert.False(t, exit.IsRuntimeCode(err), "the failure rules interpret it")
	}
}

func TestOrphansAreReapedWhileTheProgramRuns(t *testing.T) {
	h := newHost(t)
	// The parent of twenty children exits first, so this process has to reap the children.
	p := h.start(t, `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sh -c 'echo $$' & ); done; read x < /dev/zero || true; sleep 1000`)
	require.Eventually(t, func() bool { return strings.Count(h.out.String(), "\n") == 20 }, time.Minute, 10*time.Millisecond)
	for pid := range strings.FieldsSeq(h.out.String()) {
		require.Eventually(t, func() bool {
			_, err := os.Stat("/proc/" + pid)
			return errors.Is(err, os.ErrNotExist)
		}, time.Minute, 10*time.Millisecond, "process %s is a zombie", pid)
	}
	require.NoError(t, p.Signal(unix.SIGKILL))
	assert.Equal(t, 137, h.signals.Supervise(p, time.Second).Code)
}

func TestSIGTERMReachesTheWholeGroupAndTheProgramEndsInItsTime(t *testing.T) {
	h := newHost(t)
	p := h.start(t, `trap 'echo saved; exit 3' TERM; (trap 'echo child; exit 0' TERM; echo up; while :; do sleep 0.01; done) & wait; wait`)
	h.await(t, "up")
	go func() { _ = unix.Kill(os.Getpid(), unix.SIGTERM) }()
	o := h.signals.Supervise(p, time.Minute)
	assert.Equal(t, process.Outcome{Code: 3, Stopped: true}, o)
	require.NoError(t, h.stream.Drain())
	assert.Contains(t, h.out.String(), "saved")
	assert.Contains(t, h.out.String(), "child")
	require.ErrorIs(t, context.Cause(h.signals.Context()), process.ErrStopped)
}

func TestAChildThatOutlivesItsShellHasTheGracePeriodToo(t *testing.T) {
	h := newHost(t)
	// The shell has no trap, so the signal kills it. Its child takes longer to exit.
	p := h.start(t, `(trap 'sleep 0.3; echo saved; exit 0' TERM; echo up; while :; do sleep 0.01; done) & wait`)
	h.await(t, "up")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	o := h.signals.Supervise(p, time.Minute)
	assert.Equal(t, process.Outcome{Code: 143, Stopped: true}, o)
	assert.False(t, p.Alive())
	require.NoError(t, h.stream.Drain())
	assert.Contains(t, h.out.String(), "saved")
}

func TestAProgramThatIgnoresSIGTERMIsKilledAfterTheGracePeriod(t *testing.T) {
	h := newHost(t)
	p := h.start(t, `trap '' TERM; echo up; while :; do sleep 0.05; done`)
	h.await(t, "up")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	began := time.Now()
	o := h.signals.Supervise(p, 300*time.Millisecond)
	assert.Equal(t, process.Outcome{Code: 137, Stopped: true, Killed: true}, o)
	assert.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	assert.Contains(t, h.said.String(), "SIGKILL")
}

func TestASecondSIGTERMNeitherReachesTheProgramNorShortensItsTime(t *testing.T) {
	h := newHost(t)
	mark := filepath.Join(t.TempDir(), "mark")
	p := h.start(t, `n=0; trap 'n=$((n+1)); echo got $n' TERM; echo up; until [ -e `+mark+` ]; do sleep 0.01; done; sleep 0.5; exit $n`)
	h.await(t, "up")
	done := make(chan process.Outcome, 1)
	go func() { done <- h.signals.Supervise(p, time.Minute) }()
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	h.await(t, "got 1")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(h.said.String(), "SIGTERM again") }, time.Minute, time.Millisecond)
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	assert.Equal(t, process.Outcome{Code: 1, Stopped: true}, <-done)
}

func TestOtherSignalsGoToTheProgramAndStopNothing(t *testing.T) {
	h := newHost(t)
	p := h.start(t, `trap 'echo usr1; exit 4' USR1; echo up; while :; do sleep 0.01; done`)
	h.await(t, "up")
	done := make(chan process.Outcome, 1)
	go func() { done <- h.signals.Supervise(p, time.Second) }()
	// The signal has no effect until Supervise has started.
	for {
		require.NoError(t, unix.Kill(os.Getpid(), unix.SIGUSR1))
		select {
		case o := <-done:
			assert.Equal(t, process.Outcome{Code: 4}, o)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestASignalBeforeTheProgramReachesIt(t *testing.T) {
	h := newHost(t)
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	<-h.signals.Context().Done()
	p := h.start(t, `sleep 1000`)
	assert.Equal(t, process.Outcome{Code: 143, Stopped: true}, h.signals.Supervise(p, time.Minute))
}

func TestAChildThatForgotTheSignalGetsItAgain(t *testing.T) {
	h := newHost(t)
	mark := filepath.Join(t.TempDir(), "mark")
	// This simulates the time between fork and exec: a handler that does nothing receives the signal, and then the program
	// starts without a handler. USR1 shows that signals reach the program.
	p := h.start(t, `trap : USR1; trap 'exit 143' TERM; (trap 'echo got' USR1; trap : TERM; echo up; until [ -e `+mark+` ]; do :; done; exec sleep 1000)`)
	h.await(t, "up")
	done := make(chan process.Outcome, 1)
	go func() { done <- h.signals.Supervise(p, time.Minute) }()
	for got := false; !got; {
		require.NoError(t, unix.Kill(os.Getpid(), unix.SIGUSR1))
		select {
		case line := <-h.lines:
			got = line == "got"
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(h.said.String(), "SIGTERM received, passed on") }, time.Minute, time.Millisecond)
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	assert.Equal(t, process.Outcome{Code: 143, Stopped: true}, <-done)
}

func TestAProgramThatHandledTheSignalIsNotDisturbed(t *testing.T) {
	h := newHost(t)
	// The program stops handling signals before it exits, like Python during its cleanup.
	p := h.start(t, `trap : TERM; python3 -u -c '
import signal, time
def stop(*_): raise SystemExit
signal.signal(signal.SIGTERM, stop)
try:
    print("up")
    while True: time.sleep(0.02) # a signal on the way into a sleep is handled after it
finally:
    signal.signal(signal.SIGTERM, signal.SIG_DFL); time.sleep(0.5); print("cleaned up")
'`)
	h.await(t, "up")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	assert.Equal(t, process.Outcome{Stopped: true}, h.signals.Supervise(p, time.Minute))
	require.NoError(t, h.stream.Drain())
	assert.Contains(t, h.out.String(), "cleaned up")
}

func TestWhatATrapRunsAtTheEndIsLeftAlone(t *testing.T) {
	h := newHost(t)
	p := h.start(t, `trap 'sleep 0.5; echo copied; exit 0' TERM; echo up; while :; do :; done`)
	h.await(t, "up")
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	assert.Equal(t, process.Outcome{Stopped: true}, h.signals.Supervise(p, time.Minute))
	require.NoError(t, h.stream.Drain())
	assert.Contains(t, h.out.String(), "copied")
}

func TestOutputComesThroughByteForByte(t *testing.T) {
	h := newHost(t)
	want := make([]byte, 5<<20)
	for i := range want {
		want[i] = byte(i*7 + i>>8)
	}
	name := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(name, want, 0o600))
	var got bytes.Buffer
	tail := process.NewTail(1 << 20)
	s, w, err := process.NewStream(&got, tail)
	require.NoError(t, err)
	p, err := h.reaper.Start(process.Command{Args: []string{"cat", name}, Stdout: w, Stderr: w})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.Equal(t, 0, h.signals.Supervise(p, time.Second).Code)
	require.NoError(t, s.Close())
	assert.True(t, bytes.Equal(want, got.Bytes()))
	assert.True(t, bytes.Equal(want[len(want)-1<<20:], tail.Bytes()))
	assert.True(t, tail.Cut())
}

func TestWhatAProgramWroteIsThereThoughAChildHoldsItsOutputOpen(t *testing.T) {
	h := newHost(t)
	p := h.start(t, `sleep 1000 & printf 'the last words'`)
	assert.Equal(t, 0, h.signals.Supervise(p, time.Second).Code)
	require.NoError(t, h.stream.Drain())
	assert.Equal(t, "the last words", h.out.String())
	require.NoError(t, h.stream.Drain(), "and again")
}

func TestAChildThatNeverStopsWritingDoesNotHoldUpTheEnd(t *testing.T) {
	h := newHost(t)
	s, w, err := process.NewStream(io.Discard, io.Discard)
	require.NoError(t, err)
	p, err := h.reaper.Start(process.Command{Args: []string{"sh", "-c", "yes & exit 5"}, Env: os.Environ(), Stdout: w, Stderr: w})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.Equal(t, 5, h.signals.Supervise(p, time.Second).Code)
	require.NoError(t, s.Drain())
	require.NoError(t, s.Close())
	require.NoError(t, p.Signal(unix.SIGKILL))
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAProgramOutlivesTheReaderOfItsLog(t *testing.T) {
	h := newHost(t)
	tail := process.NewTail(64)
	s, w, err := process.NewStream(broken{}, tail)
	require.NoError(t, err)
	p, err := h.reaper.Start(process.Command{Args: []string{"sh", "-c", "head -c 3000000 /dev/zero; echo end"}, Env: os.Environ(), Stdout: w, Stderr: w})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.Equal(t, 0, h.signals.Supervise(p, time.Second).Code)
	require.NoError(t, s.Close())
	assert.True(t, bytes.HasSuffix(tail.Bytes(), []byte("end\n")))
}

func TestAskReturnsWhatAProgramPrints(t *testing.T) {
	r := reaper(t)
	out, code, err := r.Output(t.Context(), process.Command{Args: []string{"sh", "-c", "echo hello; exit 3"}, Env: os.Environ()})
	require.NoError(t, err)
	assert.Equal(t, "hello\n", out)
	assert.Equal(t, 3, code)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = r.Output(ctx, process.Command{Args: []string{"sleep", "1000"}, Env: os.Environ()})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestATailKeepsTheEndOfAnySequenceOfWrites(t *testing.T) {
	for _, size := range []int{1, 7, 64, 100_000} {
		tail := process.NewTail(size)
		var all []byte
		for i := range 400 {
			p := bytes.Repeat([]byte{byte(i)}, i*i%977)
			n, err := tail.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), n)
			all = append(all, p...)
			if i%50 == 0 { // reading in between changes nothing
				require.True(t, bytes.Equal(all[max(0, len(all)-size):], tail.Bytes()))
			}
		}
		assert.True(t, bytes.Equal(all[max(0, len(all)-size):], tail.Bytes()), "size %d", size)
		assert.Equal(t, len(all) > size, tail.Cut())
	}
}
