// Package source provides a configuration folder, which may be in a git repository.
// In: a folder, or a reference to a git repository in go-getter's form: git::URL//path?ref=REF. Out: a folder on this machine, and a description
// without credentials.
package source

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

const gitPrefix = "git::"

const remedyReference = "write git::https://host/repository.git//folder?ref=BRANCH, git::ssh://git@host/repository.git, git::file:///repository, or a folder"

type reference struct {
	url    string // without credentials of HTTP
	login  *url.Userinfo
	folder string // "" is the top
	ref    string // "" is the repository's HEAD
}

// IsGit reports whether a text refers to a git repository and not to a local folder.
func IsGit(text string) bool { return strings.HasPrefix(text, gitPrefix) }

// parse parses a reference to a git repository. Errors don't contain any text that may be a password.
func parse(text string) (reference, error) {
	rest, query, _ := strings.Cut(strings.TrimPrefix(text, gitPrefix), "?")
	var r reference
	var err error
	if r.ref, err = parseQuery(query); err != nil {
		return r, err
	}
	scheme := ""
	if i := strings.Index(rest, "://"); i >= 0 {
		scheme, rest = rest[:i+3], rest[i+3:]
	}
	where, folder, _ := strings.Cut(rest, "//")
	r.url = scheme + where
	if r.folder = path.Clean(folder); r.folder == "." {
		r.folder = ""
	}
	if strings.HasPrefix(r.folder, "/") || r.folder == ".." || strings.HasPrefix(r.folder, "../") {
		return r, hint.Errorf(remedyReference, "the folder %q is outside of the repository", folder)
	}
	return r, r.checkURL(scheme)
}

func parseQuery(query string) (ref string, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", hint.Errorf(remedyReference, "the text after the ? is not valid")
	}
	for key := range values {
		if key != "ref" {
			return "", hint.Errorf(remedyReference, "there is no option %q in a reference to a repository, only ref", key)
		}
	}
	ref = values.Get("ref")
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, " :^~?*[\\\n") {
		return "", hint.Errorf("name a branch, a tag or a whole commit", "%q can't be a ref", ref)
	}
	return ref, nil
}

// scpLike matches the short form of ssh, user@host:path.
var scpLike = regexp.MustCompile(`^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^:]`)

func (r *reference) checkURL(scheme string) error {
	switch scheme {
	case "https://", "http://", "ssh://", "file://":
	case "":
		if scpLike.MatchString(r.url) {
			return nil
		}
		return hint.Errorf(remedyReference, "the reference names no repository")
	default:
		return hint.Errorf(remedyReference, "paictl does not use git with %q", strings.TrimSuffix(scheme, "://"))
	}
	u, err := url.Parse(r.url)
	if err != nil || scheme != "file://" && u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") {
		return hint.Errorf(remedyReference, "the reference names no repository")
	}
	// Other users could read a password in the arguments of git, because the list of processes shows the arguments.
	if u.User != nil && (scheme == "https://" || scheme == "http://") {
		r.login, u.User = u.User, nil
		r.url = u.String()
	}
	if _, has := u.User.Password(); has {
		return hint.Errorf("use a key", "ssh accepts no password in a URL")
	}
	return nil
}

// String returns the reference without credentials.
func (r reference) String() string {
	text := gitPrefix + r.url
	if r.folder != "" {
		text += "//" + r.folder
	}
	if r.ref != "" {
		text += "?ref=" + url.QueryEscape(r.ref)
	}
	return text
}

var userinfo = regexp.MustCompile(`://[^/@\s']*@`)

// minPassword is the minimum length of a password that is masked in messages. Messages contain the password only if a server repeats it. Masking a
// shorter password would also mask parts of other words, and so reveal the password.
const minPassword = 8

func (r reference) masked(text string) string {
	text = userinfo.ReplaceAllString(text, "://"+secret.Mask+"@")
	if password, _ := r.login.Password(); len(password) >= minPassword {
		text = strings.ReplaceAll(text, password, secret.Mask)
	}
	return text
}

// Folder is a configuration folder on this machine.
type Folder struct {
	Dir string
	// Source is the origin of a fetched folder, or "" for a local folder.
	Source string
	// Commit is the name of the fetched commit.
	Commit string
	// Close removes the fetched files. It does nothing for a local folder.
	Close func() error
}

func (f Folder) String() string {
	if f.Source == "" {
		return f.Dir
	}
	return fmt.Sprintf("%s (%s)", f.Source, f.Commit[:min(len(f.Commit), 12)])
}
