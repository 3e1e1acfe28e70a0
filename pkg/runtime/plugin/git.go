package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// git is the plugin that clones a repository. It uses the git program of the job's image.
type git struct {
	Repo     string   `json:"repo_uri"`
	Options  []string `json:"options"`
	CloneDir string   `json:"clone_dir"`

	backoff time.Duration // before the second try; tests shorten it
}

const (
	cloneTries   = 10
	cloneBackoff = 2 * time.Second
	cloneMax     = 300 * time.Second
)

func (g *git) check() error {
	if g.Repo == "" {
		return errors.New("parameter repo_uri is missing")
	}
	// Don't show the error, because an invalid address may contain a password.
	if _, err := url.Parse(g.Repo); err != nil && strings.Contains(g.Repo, "://") {
		return errors.New("parameter repo_uri is not an address; in a login write %, #, / and @ as %25, %23, %2F and %40")
	}
	g.backoff = cloneBackoff
	return nil
}

func (g *git) post(context.Context, *Run) error { return nil }

func (g *git) pre(ctx context.Context, r *Run) error {
	dir, there, err := g.target(r)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("git: command not found: the image has no git; install it there, or submit the code with the job")
	}
	// Clone into a folder next to the target, so that an interrupted attempt leaves no files in the target. If the target
	// exists, clone into a folder within the target. The target may be the only folder that this user may write to, or a mount
	// point, which can't be renamed.
	beside := filepath.Dir(dir)
	if there {
		beside = dir
	}
	tmp, err := os.MkdirTemp(beside, ".clone-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	clone, err := g.clone(ctx, r, tmp)
	switch {
	case err != nil:
		return err
	case there:
		return moveInto(clone, dir)
	}
	return os.Rename(clone, dir)
}

func (g *git) clone(ctx context.Context, r *Run, tmp string) (string, error) {
	repo, secret := hideLogin(g.Repo, r.Environ)
	environ := env.Merge(r.Environ, append(secret, env.Var{Name: "GIT_TERMINAL_PROMPT", Value: "0"}))
	backoff := g.backoff
	for n := 1; ; n++ {
		to := filepath.Join(tmp, strconv.Itoa(n))
		args := append([]string{"git", "clone"}, g.Options...)
		err := r.command(append(args, "--", repo, to), environ)
		if err == nil {
			return to, nil
		}
		if ctx.Err() != nil || n == cloneTries {
			return "", fmt.Errorf("clone %s, tried %s: %w", repo, plural.Times(n), err)
		}
		r.Log("git: attempt %d of %d failed, the next in %s", n, cloneTries, backoff)
		t := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			t.Stop()
			return "", process.ErrStopped
		case <-t.C:
		}
		backoff = min(2*backoff, cloneMax)
	}
}

// target returns the folder for the clone. there reports whether the folder exists. An existing folder must be empty.
func (g *git) target(r *Run) (dir string, there bool, err error) {
	dir = g.CloneDir
	if dir == "" {
		dir = filepath.Join(r.Home, "code")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.Dir, dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", false, err
	}
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dir, false, nil
	case err != nil:
		return "", false, err
	case len(list) > 0:
		return "", false, fmt.Errorf("clone_dir %s isn't empty", dir)
	}
	return dir, true, nil
}

// moveInto moves the content of a folder to another folder on the same file system.
func moveInto(from, to string) error {
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// hideLogin removes the user and the password from an address. It returns variables that contain them for git, so that process
// lists and git's messages don't show them. The user is hidden even without a password, because it may be a token. With ssh,
// the user is kept.
func hideLogin(repo string, environ []string) (string, []env.Var) {
	u, err := url.Parse(repo)
	if err != nil || u.User == nil {
		return repo, nil
	}
	if _, password := u.User.Password(); !password && u.Scheme != "https" && u.Scheme != "http" {
		return repo, nil
	}
	full := *u
	full.Path, full.RawPath, full.RawQuery, full.Fragment = "/", "", "", ""
	bare := full
	bare.User = nil
	u.User = nil
	n := configured(environ)
	return u.String(), []env.Var{
		{Name: "GIT_CONFIG_COUNT", Value: strconv.Itoa(n + 1)},
		{Name: fmt.Sprintf("GIT_CONFIG_KEY_%d", n), Value: "url." + full.String() + ".insteadOf"},
		{Name: fmt.Sprintf("GIT_CONFIG_VALUE_%d", n), Value: bare.String()},
	}
}

// configured returns the number of git settings in the environment.
func configured(environ []string) int {
	n := 0
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(v) // git refuses anything but a number
		}
	}
	return max(0, n)
}
