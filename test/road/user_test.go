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

// user is someone at a terminal with paictl.
type user struct {
	t   *testing.T
	env []string
}

// operator has a kubeconfig.
func (w *world) operator(t *testing.T) *user {
	t.Helper()
	return &user{t: t, env: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.Kubeconfig, "PAICTL_USER=operator"}}
}

// password is the password of all people.
const password = "correct horse battery"

// people adds ann and bob, each with a group and its virtual cluster. Bob sees all jobs of his.
func (w *world) people() {
	w.t.Helper()
	o := w.operator(w.t)
	for name, grant := range map[string]string{"ann": "default", "bob": "other=see-jobs"} {
		o.does("group", "add", name+"-team", "--vc", grant)
		o.types(password).does("user", "add", name, "--group", name+"-team", "--password-stdin")
	}
}

// signIn signs a person in at the server, with paictl's own command.
func (w *world) signIn(t *testing.T, name string) *user {
	t.Helper()
	home := t.TempDir()
	u := &user{t: t, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + home}}
	u.types(password).does("login", w.URL, "--user", name, "--ca", w.CA)
	return u
}

// command is a paictl with something on its standard input.
type command struct {
	*user
	input string
}

// types gives the next command its standard input.
func (u *user) types(text string) *command { return &command{u, text} }

// ran is a command that has ended.
type ran struct {
	code     int
	out, err string
}

// run runs paictl to its end.
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

// row holds the fields of a job that are compared.
type row struct {
	User  string `json:"user"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// sees waits until "paictl job list" shows these jobs of all users: lists follow a job's state a moment later. It doesn't compare the order, because jobs
// that were submitted within a second are in any order.
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

// job returns one that "paictl job get" shows.
func (u *user) job(name string) (out row) {
	u.t.Helper()
	text := u.does("job", "get", name, "-o", "json")
	require.NoError(u.t, json.Unmarshal([]byte(text), &out), text)
	return out
}

// followed is a log that comes line by line.
type followed struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   bytes.Buffer
}

// follow starts "paictl job logs -f".
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

// next waits for the next line.
func (f *followed) next(want string) {
	f.t.Helper()
	if !f.lines.Scan() {
		err := f.cmd.Wait()
		require.Fail(f.t, "the log ends early", "before %q: %v %s", want, err, &f.err)
	}
	require.Equal(f.t, want, f.lines.Text())
}

// ends waits for the end of the command.
func (f *followed) ends() {
	f.t.Helper()
	require.False(f.t, f.lines.Scan(), "a line more: %s", f.lines.Text())
	require.NoError(f.t, f.cmd.Wait(), &f.err)
}
