package road

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/programs"
)

// user is a person who runs paictl in an environment.
type user struct {
	t   *testing.T
	env []string
}

// operator returns a user with a kubeconfig.
func (w *world) operator(t *testing.T) *user {
	t.Helper()
	return &user{t: t, env: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.Kubeconfig, "PAICTL_USER=operator"}}
}

// password is the password of all people.
const password = "correct horse battery"

// people adds ann and bob, and for each of them a group that grants a virtual cluster. Bob can see all jobs of his virtual cluster.
func (w *world) people() {
	w.t.Helper()
	o := w.operator(w.t)
	for name, grant := range map[string]string{"ann": "default", "bob": "other=see-jobs"} {
		o.does("group", "add", name+"-team", "--vc", grant)
		o.types(password).does("user", "add", name, "--group", name+"-team", "--password-stdin")
	}
}

// signIn signs in a person at the server with "paictl login".
func (w *world) signIn(t *testing.T, name string) *user {
	t.Helper()
	home := t.TempDir()
	u := &user{t: t, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + home}}
	u.types(password).does("login", w.URL, "--user", name, "--ca", w.CA)
	return u
}

// command is a user whose next command gets a text on its standard input.
type command struct {
	*user
	input string
}

// types returns a command that reads a text from its standard input.
func (u *user) types(text string) *command { return &command{u, text} }

// ran is the result of a command.
type ran struct {
	code     int
	out, err string
}

// run runs paictl, and returns its result.
func (c *command) run(args ...string) ran {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := c.prepare(ctx, args)
	cmd.Stdin = strings.NewReader(c.input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	require.NoError(c.t, ctx.Err(), "paictl %v doesn't end: %s%s", args, &out, &problems)
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		require.NoError(c.t, err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), problems.String()}
}

// does runs paictl, which must succeed, and returns its output.
func (c *command) does(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	require.Zero(c.t, r.code, "paictl %v: %s%s", args, r.out, r.err)
	return r.out
}

func (u *user) run(args ...string) ran     { u.t.Helper(); return u.types("").run(args...) }
func (u *user) does(args ...string) string { u.t.Helper(); return u.types("").does(args...) }

func (u *user) prepare(ctx context.Context, args []string) *exec.Cmd {
	u.t.Helper()
	cmd := exec.CommandContext(ctx, programs.Program(u.t, "paictl"), args...)
	cmd.Env = u.env
	return cmd
}

// row holds the fields of a job that the tests compare.
type row struct {
	User  string `json:"user"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// sees waits until "paictl job list" shows exactly these jobs of all users, because lists show the state of a job a moment later. It ignores the
// order, because jobs that were submitted within the same second may be in any order.
func (u *user) sees(want []row) {
	u.t.Helper()
	byName := func(a, b row) int { return cmp.Compare(a.User+"/"+a.Name, b.User+"/"+b.Name) }
	want = slices.SortedFunc(slices.Values(want), byName)
	var list struct {
		Items []row `json:"items"`
	}
	begun := time.Now()
	for {
		text := u.does("job", "list", "--all-users", "-o", "json")
		list.Items = nil
		require.NoError(u.t, json.Unmarshal([]byte(text), &list), text)
		slices.SortFunc(list.Items, byName)
		if slices.Equal(want, list.Items) {
			return
		}
		require.Less(u.t, time.Since(begun), patience, "the list has %v and not %v", list.Items, want)
	}
}

// job returns the row of the job that "paictl job get" shows.
func (u *user) job(name string) (out row) {
	u.t.Helper()
	text := u.does("job", "get", name, "-o", "json")
	require.NoError(u.t, json.Unmarshal([]byte(text), &out), text)
	return out
}

// followed is a log that a command prints line by line.
type followed struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   bytes.Buffer
}

// follow starts "paictl job logs -f" for a job.
func (u *user) follow(name string) *followed {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	u.t.Cleanup(cancel)
	f := &followed{t: u.t, cmd: u.prepare(ctx, []string{"job", "logs", "-f", name})}
	f.cmd.Stderr = &f.err
	out, err := f.cmd.StdoutPipe()
	require.NoError(u.t, err)
	f.lines = bufio.NewScanner(out)
	require.NoError(u.t, f.cmd.Start())
	return f
}

// next waits for the next line, which must be equal to want.
func (f *followed) next(want string) {
	f.t.Helper()
	if !f.lines.Scan() {
		err := f.cmd.Wait()
		require.Fail(f.t, "the log ends early", "before %q: %v %s", want, err, &f.err)
	}
	require.Equal(f.t, want, f.lines.Text())
}

// ends waits until the command ends. It must print no further line.
func (f *followed) ends() {
	f.t.Helper()
	require.False(f.t, f.lines.Scan(), "a line more: %s", f.lines.Text())
	require.NoError(f.t, f.cmd.Wait(), &f.err)
}
