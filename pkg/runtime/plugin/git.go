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
	"time"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/process"
)

// git clones a repository, with the git of the job's image.
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
	g.backoff = cloneBackoff
	return nil
}

func (g *git) post(context.Context, *Run) error { return nil }

func (g *git) pre(ctx context.Context, r *Run) error {
	dir, err := g.target(r)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("git: command not found: the image has no git; install it there, or submit the code along")
	}
	// Beside its place, so that a try that was cut off leaves nothing where the job looks.
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".clone-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	repo, secret := hideLogin(g.Repo)
	environ := env.Merge(r.Environ, append(secret, env.Var{Name: "GIT_TERMINAL_PROMPT", Value: "0"}))
	backoff := g.backoff
	for n := 1; ; n++ {
		clone := filepath.Join(tmp, fmt.Sprint(n))
		args := append([]string{"git", "clone"}, g.Options...)
		err := r.command(append(args, "--", repo, clone), environ)
		if err == nil {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return os.Rename(clone, dir)
		}
		if ctx.Err() != nil || n == cloneTries {
			return fmt.Errorf("clone %s, tried %d times: %w", repo, n, err)
		}
		r.Tell("git: try %d of %d failed, the next in %s", n, cloneTries, backoff)
		t := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			t.Stop()
			return process.ErrStopped
		case <-t.C:
		}
		backoff = min(2*backoff, cloneMax)
	}
}

// target is where the clone goes; it may be there, but empty.
func (g *git) target(r *Run) (string, error) {
	dir := g.CloneDir
	if dir == "" {
		dir = filepath.Join(r.Home, "code")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.Dir, dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(list) > 0 {
		return "", fmt.Errorf("clone_dir %s isn't empty", dir)
	}
	return dir, nil
}

// hideLogin takes user and password out of an address. git gets them from its environment, where
// neither a list of processes nor its own messages show them.
func hideLogin(repo string) (string, []env.Var) {
	u, err := url.Parse(repo)
	if err != nil || u.User == nil || (u.Scheme != "https" && u.Scheme != "http") {
		return repo, nil
	}
	full := *u
	full.Path, full.RawPath, full.RawQuery, full.Fragment = "/", "", "", ""
	bare := full
	bare.User = nil
	u.User = nil
	return u.String(), []env.Var{
		{Name: "GIT_CONFIG_COUNT", Value: "1"},
		{Name: "GIT_CONFIG_KEY_0", Value: "url." + full.String() + ".insteadOf"},
		{Name: "GIT_CONFIG_VALUE_0", Value: bare.String()},
	}
}
