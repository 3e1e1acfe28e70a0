package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/version"
)

// The test binary acts as the program if it is started under the program's name. behaviour is the environment variable that selects how it behaves.
const behaviour = "PAICTL_TEST_HISTORY"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Name {
		programs[os.Getenv(behaviour)](NewConn(os.Stdin, os.Stdout))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// must ends the program after an error of the test.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the test failed:", err)
		os.Exit(3)
	}
}

// receive waits for a message, which must have the type kind.
func receive(c *Conn, kind string) *Message {
	m, err := c.Receive()
	must(err)
	if m.Type != kind {
		must(fmt.Errorf("%s, not %s", m.Type, kind))
	}
	return m
}

// opened returns a program that has opened its database, and then calls then.
func opened(then func(c *Conn)) func(c *Conn) {
	return func(c *Conn) {
		must(c.Greet(Name, "paictl"))
		receive(c, TypeOpen)
		must(c.Send(&Message{Type: TypeOpened}))
		receive(c, TypeTake)
		then(c)
	}
}

// says returns a program that writes bytes to its output instead of a response to TypeTake.
func says(text string) func(c *Conn) {
	return opened(func(*Conn) { _, _ = os.Stdout.WriteString(text) })
}

const partBytes = 1 << 20 // more than a pipe holds

var programs = map[string]func(c *Conn){
	"another release": func(c *Conn) {
		must(c.Send(&Message{Type: TypeHello, Protocol: protocol, Version: "v0.0.1\x1b[2J"}))
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"another protocol": func(c *Conn) {
		must(c.Send(&Message{Type: TypeHello, Protocol: protocol + 1, Version: version.Version}))
	},
	"another program": func(*Conn) { _, _ = os.Stdout.WriteString("Usage: something else\n") },
	"no greeting":     func(c *Conn) { must(c.Send(&Message{Type: TypeOpened})) },
	"it panics": func(*Conn) {
		fmt.Fprintf(os.Stderr, "panic: %s\x1b[2J\n%s\n", os.Getenv("PGUSER")+":hunter2", strings.Repeat("goroutine ", 1000))
		os.Exit(2)
	},
	"it shows what others see": func(c *Conn) {
		must(c.Greet(Name, "paictl"))
		m := receive(c, TypeOpen)
		line, err := os.ReadFile("/proc/self/cmdline")
		must(err)
		env, err := os.ReadFile("/proc/self/environ")
		must(err)
		must(SetSecrets(m.Secrets))
		again, err := os.ReadFile("/proc/self/environ")
		must(err)
		must(c.Send(&Message{Type: TypeFailed, Error: fmt.Sprintf("from %s, password %s; others see %s", m.From, os.Getenv("PGPASSWORD"), strings.ReplaceAll(string(line)+string(env)+string(again), "\x00", " "))}))
	},
	"it can't connect": func(c *Conn) {
		must(c.Greet(Name, "paictl"))
		receive(c, TypeOpen)
		must(c.Send(&Message{Type: TypeFailed, Error: "connect to OpenPAI's database: refused", Hint: "check the address"}))
	},
	"it is killed in a part": opened(func(c *Conn) {
		must(c.Send(&Message{Type: TypePart, Size: partBytes}))
		_, _ = os.Stdout.WriteString(strings.Repeat("x", partBytes/2))
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}),
	"a length without end": says("\xff\xff\xff\xff"),
	"a cut message":        says("\x00\x00\x00\x09{"),
	"no JSON":              says(framed("hello")),
	"another message":      says(framed(`{"type":"opened"}`)),
	"no report":            says(framed(`{"type":"done"}`)),
	"a person of nothing":  says(framed(`{"type":"done","report":{"people":[null]}}`)),
	"a part of nothing":    says(framed(`{"type":"part"}`)),
	"a part without end":   says(framed(`{"type":"part","size":9000000000000000000}`)),
	"it does all": opened(func(c *Conn) {
		must(c.Send(&Message{Type: TypeAsk, UIDs: []string{"old", "new"}}))
		if known := receive(c, TypeKnown).Known; len(known) != 2 || !known[0] || known[1] {
			must(fmt.Errorf("the answer is %v", known))
		}
		must(c.SendPart(strings.NewReader(strings.Repeat("x", partBytes)), partBytes))
		receive(c, TypeGiven)
		must(c.Send(&Message{Type: TypeTold, Checked: 2, All: 3}))
		must(c.SendPart(strings.NewReader("y"), 1))
		receive(c, TypeGiven)
		must(c.Send(&Message{Type: TypeDone, Report: &Report{Jobs: 1, Known: 1, People: []*Person{{Name: "alice"}}}, Error: "a later page can't be read", Hint: "look"}))
	}),
	"it ends with paictl": opened(func(c *Conn) {
		must(c.SendPart(strings.NewReader(strings.Repeat("x", partBytes)), partBytes))
		if m, err := c.Receive(); err == nil && m.Type == TypeGiven {
			must(c.Send(&Message{Type: TypeTold, Checked: 1}))
			_, err = c.Receive()
			must(errors.Join(err, errors.New("the second message")))
		}
		must(c.Send(&Message{Type: TypeTold, Checked: 1})) // before it notices
		must(c.SendPart(strings.NewReader("y"), 1))
		must(c.Send(&Message{Type: TypeDone, Report: &Report{Jobs: 7}, Error: "the end of paictl"}))
	}),
}

// program returns the path of a program with one of the behaviors in programs.
func program(t *testing.T, name string) string {
	t.Helper()
	require.Contains(t, programs, name)
	self, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), Name)
	require.NoError(t, os.Symlink(self, link))
	t.Setenv(behaviour, name)
	return link
}

func open(t *testing.T, name string) *Source {
	t.Helper()
	s, err := Open(t.Context(), program(t, name), "postgres://root@old/openpai")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// ignored returns Options that accept all jobs and discard them.
func ignored() Options {
	return Options{Known: func(string) bool { return false }, Store: func(_ context.Context, part io.Reader, _ int64) error {
		_, err := io.Copy(io.Discard, part)
		return err
	}}
}

func TestAProgramOfAnotherReleaseIsRefused(t *testing.T) {
	_, err := Open(t.Context(), program(t, "another release"), "x")
	require.ErrorContains(t, err, "paictl-history is of v0.0.1[2J, and paictl of "+version.Version)
	assert.NotContains(t, err.Error(), "\x1b")
	assert.Contains(t, hint.Of(err), "install both from one release")
	_, err = Open(t.Context(), program(t, "another protocol"), "x")
	require.ErrorContains(t, err, "paictl-history is of "+version.Version)
}

func TestAProgramThatIsAnotherOneIsRefused(t *testing.T) {
	for name, want := range map[string]string{"another program": "bytes, which are more than", "no greeting": `unexpected type "opened"`} {
		file := program(t, name)
		_, err := Open(t.Context(), file, "x")
		require.ErrorContains(t, err, want, name)
		require.ErrorContains(t, err, file, name)
		assert.Contains(t, hint.Of(err), "install", name)
	}
	_, err := Open(t.Context(), filepath.Join(t.TempDir(), Name), "x")
	require.ErrorContains(t, err, "start paictl-history")
}

func TestTheLastWordsOfAProgramAreShownWithoutPasswords(t *testing.T) {
	t.Setenv("PGPASSWORD", "hunter2")
	t.Setenv("PGUSER", "root")
	_, err := Open(t.Context(), program(t, "it panics"), "x")
	require.ErrorContains(t, err, "ended before it had finished (exit status 2): panic: root:"+secret.Mask)
	assert.NotContains(t, err.Error(), "hunter2")
	assert.NotContains(t, err.Error(), "\x1b")
	assert.Less(t, len(err.Error()), maxSaid+1000)
}

func TestOthersDoNotSeeThePassword(t *testing.T) {
	const password = "hunter2-of-the-database"
	t.Setenv("PGPASSWORD", password)
	_, err := Open(t.Context(), program(t, "it shows what others see"), "/etc/paictl/address")
	require.Error(t, err)
	told, seen, _ := strings.Cut(err.Error(), "; others see ")
	assert.Equal(t, "from /etc/paictl/address, password "+password, told)
	assert.Contains(t, seen, behaviour, "that is its environment")
	assert.NotContains(t, seen, password)
	assert.NotContains(t, seen, "/etc/paictl/address")
}

func TestWhyADatabaseCannotBeOpenedIsShown(t *testing.T) {
	_, err := Open(t.Context(), program(t, "it can't connect"), "x")
	require.EqualError(t, err, "connect to OpenPAI's database: refused")
	assert.Equal(t, "check the address", hint.Of(err))
}

func TestPartsAnswersAndTheReportCross(t *testing.T) {
	s := open(t, "it does all")
	var told, parts []int
	o := ignored()
	o.Known = func(uid string) bool { return uid == "old" }
	o.Progress = func(done, all int) { told = append(told, done, all) }
	o.Store = func(_ context.Context, part io.Reader, size int64) error {
		n, err := io.Copy(io.Discard, part)
		assert.Equal(t, size, n)
		parts = append(parts, int(n))
		return err
	}
	r, err := s.Read(t.Context(), o)
	require.EqualError(t, err, "a later page can't be read")
	assert.Equal(t, "look", hint.Of(err))
	assert.Equal(t, &Report{Jobs: 1, Known: 1, People: []*Person{{Name: "alice"}}}, r)
	assert.Equal(t, []int{partBytes, 1}, parts)
	assert.Equal(t, []int{2, 3}, told)
}

func TestAProgramThatIsKilledIsReported(t *testing.T) {
	s := open(t, "it is killed in a part")
	o := ignored()
	var received error
	o.Store = func(_ context.Context, part io.Reader, _ int64) error {
		_, received = io.Copy(io.Discard, part)
		return errors.New("the controller got less than it was promised")
	}
	r, err := s.Read(t.Context(), o)
	require.ErrorIs(t, received, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "ended before it had finished (signal: killed)")
	assert.Nil(t, r)
}

func TestMessagesThatMakeNoSenseEndTheRun(t *testing.T) {
	for name, want := range map[string]string{
		"a length without end": "which are more than", "a cut message": "ended before it had finished (exit status 0)", "no JSON": "isn't JSON",
		"another message": `unexpected type "opened"`, "no report": `unexpected type "done"`, "a person of nothing": `unexpected type "done"`,
		"a part of nothing": "a part is said to have 0 bytes", "a part without end": "a part is said to have",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open(t, name).Read(t.Context(), ignored())
			require.ErrorContains(t, err, want)
			assert.Nil(t, r)
		})
	}
	o := Options{Known: func(uid string) bool { return uid == "old" }}
	_, err := open(t, "it does all").Read(t.Context(), o)
	require.ErrorContains(t, err, `unexpected type "part"`, "a dry run gives nothing")
}

func TestAnErrorOfTheReceiverEndsTheProgramAndIsReturned(t *testing.T) {
	s := open(t, "it ends with paictl")
	o := ignored()
	full := hint.Errorf("make room", "the disk is full")
	given := 0
	var rest io.Reader
	o.Store = func(_ context.Context, part io.Reader, _ int64) error { given++; rest = part; return full }
	o.Progress = func(int, int) { t.Error("there is no progress after it") }
	r, err := s.Read(t.Context(), o)
	require.Equal(t, full, err)
	assert.Equal(t, &Report{Jobs: 7}, r, "the program says what was taken before")
	assert.Equal(t, 1, given)
	_, err = rest.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrClosed, "net/http may read on when it has failed")
	s.Close()
	assert.True(t, s.cmd.ProcessState.Success())
}

func TestTheEndOfTheContextEndsTheProgram(t *testing.T) {
	s := open(t, "it ends with paictl")
	ctx, cancel := context.WithCancel(t.Context())
	o := ignored()
	o.Progress = func(int, int) { cancel() }
	r, err := s.Read(ctx, o)
	require.Equal(t, context.Canceled, err)
	assert.Nil(t, r, "it fails on purpose")
	s.Close()
	assert.True(t, s.cmd.ProcessState.Exited(), "it wasn't killed")
	assert.Equal(t, 3, s.cmd.ProcessState.ExitCode())
}
