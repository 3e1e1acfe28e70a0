package cmd_test

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/docs"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

var update = flag.Bool("update", false, "write docs/commands")

// pages generates the reference as a user with the given home folder.
func pages(t *testing.T, home string) map[string]string {
	t.Helper()
	t.Setenv("HOME", home)
	t.Setenv("USER", filepath.Base(home))
	streams, _, _, _ := iostreams.Test()
	f := &cmdutil.Factory{IO: streams, Version: "v0.0.0-test", Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)}
	return docs.Pages(cmd.NewCmdRoot(f))
}

func TestTheReferenceOfCommandsIsCurrent(t *testing.T) {
	const dir = "../../docs/commands"
	want := pages(t, "/home/ann")
	have, err := filepath.Glob(filepath.Join(dir, "*.md"))
	require.NoError(t, err)
	if *update {
		for _, file := range have {
			require.NoError(t, os.Remove(file))
		}
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for name, text := range want {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		return
	}
	for _, file := range have {
		assert.Contains(t, want, filepath.Base(file), "there is no such command any more: run make reference")
	}
	for name, text := range want {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if assert.NoError(t, err, "run make reference") {
			assert.Equal(t, text, string(page), "docs/commands/%s: run make reference", name)
		}
	}
}

func TestTheReferenceOfCommandsIsTheSameOnEveryMachine(t *testing.T) {
	ann, bob := pages(t, "/home/ann"), pages(t, "/srv/people/bob")
	assert.Equal(t, ann, bob)
	for name, text := range ann {
		assert.NotContains(t, text, "/home/ann", name)
	}
}

// The reference must describe each command in a sentence, so that users can find the command.
func TestEveryCommandOfTheReferenceSaysWhatItDoes(t *testing.T) {
	for name, text := range pages(t, "/home/ann") {
		assert.NotContains(t, text, ") |  |\n", name)
		assert.NotContains(t, text, "\n\n.\n", name)
		assert.NotRegexp(t, `\S\(default`, text, name)
	}
}
