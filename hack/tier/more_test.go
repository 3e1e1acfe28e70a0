package main

import (
	"fmt"
	"testing"
)

func TestTheFormerCommitIsOfATagOrOfAnEarlierDay(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(env []string, args ...string) string {
		t.Helper()
		out, err := git(t.Context(), env, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// commit makes a commit at an hour after the beginning of a day, and returns its hash.
	const midnight = 1_700_006_400
	commit := func(hours int) string {
		t.Helper()
		when := fmt.Sprintf("%d +0800", midnight+hours*3600)
		run([]string{"GIT_COMMITTER_DATE=" + when, "GIT_AUTHOR_DATE=" + when},
			"-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "-m", "commit")
		return run(nil, "rev-parse", "HEAD")
	}
	former := func(want string) {
		t.Helper()
		if got, err := formerCommit(t.Context()); err != nil || got != want {
			t.Errorf("the former commit is %q (%v), not %q", got, err, want)
		}
	}
	run(nil, "init", "--quiet")
	commit(1)
	former("") // the history has only one commit
	last := commit(23)
	former("")
	commit(25)
	former(last)
	commit(47)
	former(last)
	run(nil, "tag", "v1.0.0")
	former(last) // HEAD isn't before itself
	tagged := run(nil, "rev-parse", "HEAD")
	commit(48)
	former(tagged)
	commit(100)
	former(tagged)
}
