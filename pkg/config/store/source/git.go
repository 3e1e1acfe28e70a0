package source

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
)

// Options configures the runs of git.
type Options struct {
	// Ask allows git and ssh to ask the user for passwords on the terminal. Without Ask, repositories that need a password can't be fetched.
	Ask bool
	// Environ is the environment, or nil for os.Environ(). git gets only the variables that it needs.
	Environ []string
}

// Open returns a local folder, or fetches a folder from a git repository. The caller must call Close.
func Open(ctx context.Context, text string, o Options) (*Folder, error) {
	if !IsGit(text) {
		return &Folder{Dir: text, Close: func() error { return nil }}, nil
	}
	r, err := parse(text)
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, hint.Errorf("install it, or give a folder", "git, which fetches repositories, is not installed on this machine")
	}
	temp, err := os.MkdirTemp("", "paictl-git-") // 0700
	if err != nil {
		return nil, fmt.Errorf("make a folder for the repository: %w", err)
	}
	g := git{program: program, dir: temp, reference: r, options: o}
	commit, err := g.fetch(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	dir := filepath.Join(temp, filepath.FromSlash(r.folder))
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil, errors.Join(hint.Errorf("check what follows //", "%s: %q is not a folder", r, r.folder), os.RemoveAll(temp))
	}
	return &Folder{Dir: dir, Source: r.String(), Commit: commit, Close: func() error { return os.RemoveAll(temp) }}, nil
}

type git struct {
	program   string
	dir       string
	reference reference
	options   Options
}

// fetch fetches one commit without its history, and writes the files of the folder.
func (g git) fetch(ctx context.Context) (commit string, err error) {
	ref := g.reference.ref
	if ref == "" {
		ref = "HEAD"
	}
	if _, err := g.run(ctx, "init", "--quiet", "--template="); err != nil {
		return "", err
	}
	if _, err := g.run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--end-of-options", g.reference.url, ref); err != nil {
		if !wholeCommit.MatchString(ref) {
			return "", err
		}
		// The server doesn't allow fetching a single commit by its name. Fetch all branches and tags instead, and search them for the commit.
		if _, err := g.run(ctx, "fetch", "--quiet", "--end-of-options", g.reference.url, "+refs/heads/*:refs/remotes/r/*", "+refs/tags/*:refs/tags/*"); err != nil {
			return "", err
		}
		return ref, g.checkout(ctx, ref)
	}
	out, err := g.run(ctx, "rev-parse", "--verify", "FETCH_HEAD^{commit}")
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(out)
	return commit, g.checkout(ctx, commit)
}

var wholeCommit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func (g git) checkout(ctx context.Context, commit string) error {
	folder := g.reference.folder
	if folder == "" {
		folder = "."
	}
	if _, err := g.run(ctx, "checkout", "--quiet", commit, "--", ":(literal)"+folder); err != nil {
		if ctx.Err() == nil && strings.Contains(err.Error(), "pathspec") {
			return hint.Errorf("check the folder after // and the ref", "%s has no folder %q", g.reference, g.reference.folder)
		}
		return err
	}
	return nil
}

// settings returns the settings for every run of git. With these settings, git doesn't execute programs and hooks of the repository. It doesn't
// follow links out of the repository, and uses only the usual transports.
func (g git) settings() [][2]string {
	s := [][2]string{
		{"core.hooksPath", os.DevNull}, {"core.symlinks", "false"}, {"core.fsmonitor", "false"}, {"gc.auto", "0"},
		{"submodule.recurse", "false"}, {"fetch.recurseSubmodules", "false"}, {"protocol.ext.allow", "never"}, {"core.autocrlf", "false"},
	}
	if g.reference.login != nil {
		password, _ := g.reference.login.Password()
		token := base64.StdEncoding.EncodeToString([]byte(g.reference.login.Username() + ":" + password))
		origin, _ := url.Parse(g.reference.url) // parsed before
		s = append(s, [2]string{"http." + origin.Scheme + "://" + origin.Host + "/.extraHeader", "Authorization: Basic " + token})
	}
	return s
}

// run runs git in the temporary folder and returns its output. An error contains the message of git without credentials.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.program, args...)
	cmd.Dir = g.dir
	cmd.Env = g.environ()
	cmd.WaitDelay = 5 * time.Second // programs started by git may outlive it; with less time, their output is lost on a busy machine
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if g.options.Ask {
		cmd.Stdin = os.Stdin
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", hint.Errorf(g.remedy(stderr.String()), "fetch %s: %s", g.reference, g.said(stderr.String(), err))
	}
	return stdout.String(), nil
}

// said returns the first lines of git's error message on one line. It omits general advice.
func (g git) said(stderr string, err error) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(stderr), "\n") {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "fatal: "), "error: ")
		if line == "" || len(out) == 3 {
			break
		}
		if !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, "warning: ") {
			out = append(out, strings.TrimSuffix(line, "."))
		}
	}
	if len(out) == 0 {
		return "git: " + err.Error()
	}
	return g.reference.masked(strings.Join(out, "; "))
}

func (g git) remedy(stderr string) string {
	for text, remedy := range map[string]string{
		"couldn't find remote ref":  "check the ref: a branch, a tag or a whole commit",
		"not our ref":               "check the ref: a branch, a tag or a whole commit",
		"dubious ownership":         "the repository belongs to another user: see git's safe.directory",
		"terminal prompts disabled": "the repository requires a login: set up a credential helper of git or a key, or give a token in the URL",
		"Permission denied":         "check that your key is known there: ssh -T USER@HOST",
		"Authentication failed":     "check the login or token",
	} {
		if strings.Contains(stderr, text) {
			return remedy
		}
	}
	return "check that it works with: git ls-remote " + g.reference.url
}

// passed lists the variables for git: the locations of programs, keys and proxies. It excludes variables that would make git use another repository,
// such as GIT_DIR.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "SSH_ASKPASS",
	"GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "TERM", "DISPLAY",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}

func (g git) environ() []string {
	given := g.options.Environ
	if given == nil {
		given = os.Environ()
	}
	env := []string{"LC_ALL=C", "GIT_ALLOW_PROTOCOL=https:http:ssh:file"}
	hasSSH := false
	for _, v := range given {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(passed, name) {
			env = append(env, v)
			hasSSH = hasSSH || name == "GIT_SSH" || name == "GIT_SSH_COMMAND"
		}
	}
	if !g.options.Ask {
		env = append(env, "GIT_TERMINAL_PROMPT=0")
		if !hasSSH {
			env = append(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
		}
	}
	settings := g.settings()
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}
