package plugin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/test/tier"
)

// repository must be called before a Reaper runs.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this machine has no git")
	}
	dir := t.TempDir()
	work, bare := filepath.Join(dir, "work"), filepath.Join(dir, "repo.git")
	require.NoError(t, os.MkdirAll(filepath.Join(work, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(work, "sub", "train.py"), []byte("print(1)\n"), 0o600))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", work}, {"-C", work, "add", "."}, {"-C", work, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "first"},
		{"clone", "-q", "--bare", work, bare},
	} {
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return bare
}

// backend returns the path of git's program that serves repositories. It must be called before a Reaper runs.
func backend(t *testing.T) string {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
}

// gitServer serves a folder in a separate process, because this process reaps the children of net/http/cgi.
func gitServer(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "repositories", dir, backend(t))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var url string
	_, err = fmt.Fscan(out, &url)
	require.NoError(t, err)
	return url
}

// serveRepositories is the main function of that process. It rejects the first request with a login.
func serveRepositories(dir, backend string) {
	handler := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
	var fail atomic.Int32
	fail.Store(1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "alice" || password != "s3cret/#%":
			w.Header().Set("WWW-Authenticate", "Basic realm=x")
			w.WriteHeader(http.StatusUnauthorized)
		case fail.Add(-1) >= 0:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	fmt.Println(s.URL)
	select {} // until it is killed
}

// clone runs the plugin git with short pauses between its attempts.
func clone(t *testing.T, ctx context.Context, r *Run, parameters string) error {
	t.Helper()
	p := plugins(t, r, named("git", parameters))
	g, ok := p.list[0].plugin.(*git)
	require.True(t, ok)
	g.backoff = time.Millisecond
	return p.Pre(ctx)
}

func TestARepositoryIsClonedWhereTheJobLooks(t *testing.T) {
	repo := repository(t)
	r, _ := newRun(t)
	empty := t.TempDir()
	for name, c := range map[string]struct{ dir, want string }{
		"by default":              {"", filepath.Join(r.Home, "code")},
		"a folder to be made":     {"a/b", filepath.Join(r.Dir, "a", "b")},
		"an empty one":            {empty, empty},
		"one of the job's folder": {".", r.Dir},
	} {
		require.NoError(t, clone(t, t.Context(), r, fmt.Sprintf(`{"repo_uri":%q,"clone_dir":%q,"options":["--depth=1"]}`, "file://"+repo, c.dir)), name)
		_ = os.RemoveAll(filepath.Join(r.Dir, "a"))
		if name != "a folder to be made" {
			assert.FileExists(t, filepath.Join(c.want, "sub", "train.py"), name)
			list, err := os.ReadDir(c.want)
			require.NoError(t, err)
			assert.Len(t, list, 2, "%s: the file and .git", name)
			_ = os.RemoveAll(filepath.Join(c.want, "sub"))
			_ = os.RemoveAll(filepath.Join(c.want, ".git"))
		}
	}
}

func TestAFolderThatIsAllTheUserMayWriteToIsEnough(t *testing.T) {
	repo := repository(t)
	tier.More(t, "root, to mount")
	r, _ := newRun(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "volume")
	require.NoError(t, os.Mkdir(dir, 0o755))
	// The folder is a mount point like a volume, so it can't be renamed or replaced.
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("this machine lets nobody mount: %v", err)
	}
	defer func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	require.NoError(t, clone(t, t.Context(), r, fmt.Sprintf(`{"repo_uri":%q,"clone_dir":%q}`, "file://"+repo, dir)))
	assert.FileExists(t, filepath.Join(dir, "sub", "train.py"))
}

func TestALoginIsShownNowhere(t *testing.T) {
	url := gitServer(t, filepath.Dir(repository(t)))
	r, log := newRun(t)
	r.Environ = append(r.Environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=X-Mine: yes")
	dir := filepath.Join(t.TempDir(), "mine")
	repo := strings.Replace(url, "http://", "http://alice:s3cret%2F%23%25@", 1) + "/repo.git"
	require.NoError(t, clone(t, t.Context(), r, fmt.Sprintf(`{"repo_uri":%q,"clone_dir":%q}`, repo, dir)), log.String())
	assert.Contains(t, log.String(), "attempt 1 of 10 failed, the next in 1ms")
	config, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
	require.NoError(t, err)
	for _, text := range []string{log.String(), string(config)} {
		assert.NotContains(t, text, "s3cret")
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing is left of the try that failed")
}

func TestHowALoginIsTakenOutOfAnAddress(t *testing.T) {
	for repo, c := range map[string]struct{ shown, key string }{
		"https://alice:pw@host/r.git":     {"https://host/r.git", "url.https://alice:pw@host/.insteadOf"},
		"https://token@host:8443/a/b?x#y": {"https://host:8443/a/b?x#y", "url.https://token@host:8443/.insteadOf"},
		"https://a:p@w@host/r":            {"https://host/r", "url.https://a:p%40w@host/.insteadOf"},
		"ssh://git@host/r":                {"ssh://git@host/r", ""},
		"ssh://git:pw@host/r":             {"ssh://host/r", "url.ssh://git:pw@host/.insteadOf"},
		"git@host:r.git":                  {"git@host:r.git", ""},
		"/srv/r.git":                      {"/srv/r.git", ""},
		"https://host/r":                  {"https://host/r", ""},
	} {
		shown, vars := hideLogin(repo, []string{"GIT_CONFIG_COUNT=2", "X=GIT_CONFIG_COUNT=9"})
		assert.Equal(t, c.shown, shown)
		if c.key == "" {
			assert.Empty(t, vars, repo)
			continue
		}
		require.Len(t, vars, 3, repo)
		assert.Equal(t, "3", vars[0].Value)
		assert.Equal(t, "GIT_CONFIG_KEY_2", vars[1].Name)
		assert.Equal(t, c.key, vars[1].Value)
	}
	for _, repo := range []string{"https://alice:s3%cret@host/r", "https://alice:s3/cret@host/r", "https://alice:s3#cret@host/r", "https://alice:s3 cret@host/r"} {
		_, err := New([]spec.Plugin{named("git", fmt.Sprintf(`{"repo_uri":%q}`, repo))}, &Run{Log: t.Logf})
		require.ErrorContains(t, err, "repo_uri is not an address", repo)
		assert.NotContains(t, err.Error(), "s3", repo)
	}
}

func TestACloneThatFailsLeavesNothing(t *testing.T) {
	repository(t)
	r, log := newRun(t)
	dir := filepath.Join(t.TempDir(), "code")
	err := clone(t, t.Context(), r, fmt.Sprintf(`{"repo_uri":"file:///no/such/repo.git","clone_dir":%q}`, dir))
	require.ErrorContains(t, err, "clone file:///no/such/repo.git, tried 10 times")
	assert.Contains(t, log.String(), "attempt 9 of 10")
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	assert.Empty(t, left)

	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	require.ErrorContains(t, clone(t, t.Context(), r, fmt.Sprintf(`{"repo_uri":"file:///x","clone_dir":%q}`, dir)), "isn't empty")
	require.Error(t, clone(t, t.Context(), r, fmt.Sprintf(`{"repo_uri":"file:///x","clone_dir":%q}`, filepath.Join(dir, "mine"))), "a file")
}

func TestATaskThatIsStoppedClonesNoMore(t *testing.T) {
	repository(t)
	r, log := newRun(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	p := plugins(t, r, named("git", `{"repo_uri":"file:///no/such/repo.git"}`))
	g, ok := p.list[0].plugin.(*git)
	require.True(t, ok)
	g.backoff = time.Hour
	go func() { done <- p.Pre(ctx) }()
	log.await(t, "attempt 1 of 10")
	cancel(process.ErrStopped)
	require.ErrorIs(t, <-done, process.ErrStopped)
	assert.NotContains(t, log.String(), "try 2 of")
}
