package source

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/test/runnable"
)

func TestAReferenceIsReadAsGoGetterWritesIt(t *testing.T) {
	for text, want := range map[string]reference{
		"git::https://h.example/o/r.git":                         {url: "https://h.example/o/r.git"},
		"git::https://h.example/o/r.git//a/b?ref=v1.2":           {url: "https://h.example/o/r.git", folder: "a/b", ref: "v1.2"},
		"git::https://h.example/o/r.git?ref=feature%2Fx":         {url: "https://h.example/o/r.git", ref: "feature/x"},
		"git::ssh://git@h.example:2222/o/r.git//a":               {url: "ssh://git@h.example:2222/o/r.git", folder: "a"},
		"git::git@h.example:o/r.git//a?ref=main":                 {url: "git@h.example:o/r.git", folder: "a", ref: "main"},
		"git::file:///srv/r//a/../b/":                            {url: "file:///srv/r", folder: "b"},
		"git::https://u:p@h.example/r.git//.?ref=0123456789abcd": {url: "https://h.example/r.git", ref: "0123456789abcd"},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := parse(text)
			require.NoError(t, err)
			got.login = nil
			assert.Equal(t, want, got)
		})
	}
}

func TestAReferenceThatIsNoneIsRefusedWithoutItsPassword(t *testing.T) {
	for text, want := range map[string]string{
		"git::":                                   "the reference names no repository",
		"git::relative/path":                      "the reference names no repository",
		"git::https:///r":                         "the reference names no repository",
		"git::ssh://-oProxyCommand=x/r":           "the reference names no repository",
		"git::ext::sh -c hunter2":                 "the reference names no repository",
		"git::ftp://h/r":                          `paictl does not use git with "ftp"`,
		"git::https://u:hunter2@h/r//../x":        `the folder "../x" is outside of the repository`,
		"git::https://u:hunter2@h/r///etc":        `the folder "/etc" is outside of the repository`,
		"git::https://u:hunter2@h/r?ref=--x":      `"--x" can't be a ref`,
		"git::https://u:hunter2@h/r?ref=a..b%20c": `"a..b c" can't be a ref`,
		"git::https://u:hunter2@h/r?sshkey=x":     `there is no option "sshkey" in a reference to a repository, only ref`,
		"git::https://u:hunter2@h/r?%zz":          "the text after the ? is not valid",
		"git::ssh://u:hunter2@h/r":                "ssh accepts no password in a URL",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := parse(text)
			require.EqualError(t, err, want)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotEmpty(t, hint.Of(err))
		})
	}
}

// repository creates a git repository with two commits. It returns the folder and the first commit. The first commit has the tag v1.
func repository(t *testing.T) (dir, first string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on this machine")
	}
	dir = filepath.Join(t.TempDir(), "repo")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "clusters", "a"), 0o755))
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "clusters", "a", "layout.yaml"), []byte(text), 0o644))
		git("add", "-A")
		git("commit", "-q", "-m", text)
	}
	git("init", "-q", "-b", "main")
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "clusters", "link")))
	write("one")
	git("tag", "v1")
	first = git("rev-parse", "HEAD")
	write("two")
	git("checkout", "-q", "-b", "feature/x")
	write("three")
	git("checkout", "-q", "main")
	return dir, first
}

func TestAFolderIsFetchedAtABranchATagOrACommit(t *testing.T) {
	dir, first := repository(t)
	for query, want := range map[string]string{"": "two", "?ref=main": "two", "?ref=v1": "one", "?ref=feature/x": "three", "?ref=" + first: "one"} {
		t.Run("ref "+query, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			// fetch must ignore the repository in the caller's environment.
			t.Setenv("GIT_DIR", "/nowhere")
			f, err := Open(t.Context(), "git::file://"+dir+"//clusters/a"+query, Options{})
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(f.Dir, "layout.yaml"))
			require.NoError(t, err)
			assert.Equal(t, want, string(b))
			assert.Len(t, f.Commit, 40)
			if want == "one" {
				assert.Equal(t, first, f.Commit)
			}
			top, err := os.Stat(filepath.Dir(filepath.Dir(f.Dir)))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), top.Mode().Perm())
			require.NoError(t, f.Close())
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func TestWhatIsNotInTheRepositoryIsNamed(t *testing.T) {
	dir, _ := repository(t)
	for rest, want := range map[string]string{
		"//clusters/b":                    "has no folder \"clusters/b\"",
		"//clusters/a/layout.yaml":        "is not a folder",
		"//clusters/link":                 "is not a folder",
		"//clusters/a?ref=missing":        "couldn't find remote ref missing",
		"/missing.git//clusters/a":        "does not appear to be a git repository",
		"?ref=" + strings.Repeat("0", 40): "000",
	} {
		t.Run(rest, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			_, err := Open(t.Context(), "git::file://"+dir+rest, Options{})
			require.ErrorContains(t, err, want)
			assert.NotEmpty(t, hint.Of(err))
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			require.NoError(t, err)
			assert.Empty(t, left, "nothing stays behind")
		})
	}
}

func TestALoginIsSentToItsServerAndShownNowhere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on this machine")
	}
	var seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	t.Setenv("HOME", t.TempDir())
	text := "git::" + strings.Replace(server.URL, "://", "://robot:hunter2@", 1) + "/r.git"
	_, err := Open(t.Context(), text, Options{})
	require.Error(t, err)
	assert.NotContains(t, err.Error()+hint.Of(err), "hunter2")
	assert.NotContains(t, err.Error()+hint.Of(err), "robot")
	assert.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("robot:hunter2")), seen)
}

func TestAFolderIsTakenAsItIs(t *testing.T) {
	f, err := Open(t.Context(), "some/folder", Options{})
	require.NoError(t, err)
	assert.Equal(t, "some/folder", f.Dir)
	assert.Empty(t, f.Source)
	assert.NoError(t, f.Close())
}

func TestACancelledFetchDoesNotWaitForWhatGitHasStarted(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "started")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	program := filepath.Join(dir, "git")
	runnable.Write(t, program, "#!/bin/sh\nsleep 300 &\necho $! > "+fifo+"\nwait\n")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := git{program: program, dir: dir}.run(ctx, "fetch")
		ended <- err
	}()
	text, err := os.ReadFile(fifo) // until the child runs, which holds git's output open
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, syscall.Kill(child, 0), "it outlives git")
}

func TestAMessageOfGitHidesOnlyThePassword(t *testing.T) {
	r, err := parse("git::https://ci:hunter2hunter2@git.example.org/ci-config/x.git")
	require.NoError(t, err)
	assert.Equal(t, "unable to access 'https://********@git.example.org/ci-config/x.git/': ******** is wrong",
		r.masked("unable to access 'https://ci:x@git.example.org/ci-config/x.git/': hunter2hunter2 is wrong"))
	r, err = parse("git::https://u:u@h.example/x.git")
	require.NoError(t, err)
	assert.Equal(t, "unable to access: Couldn't connect", r.masked("unable to access: Couldn't connect"))
}
