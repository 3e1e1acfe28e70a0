package docs

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// unchecked is the mark of a block whose content isn't checked: "<!-- unchecked: REASON -->". Such a block isn't an example of the current command
// line, or isn't a complete YAML document.
const unchecked = "unchecked"

// synopsis is the language of blocks in docs/commands that list the arguments of a command. Examples in these blocks are checked.
const synopsis = "text"

// newRoot returns the command line of the program.
func newRoot() *cobra.Command {
	streams, _, _, _ := iostreams.Test()
	return cmd.NewCmdRoot(&cmdutil.Factory{IO: streams, Version: "test", Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)})
}

// accepts returns an error if paictl doesn't accept a command line. It doesn't run the command. whole means that the command line must contain all
// arguments.
func accepts(args []string, whole bool) error {
	top := newRoot()
	top.InitDefaultHelpCmd()
	top.InitDefaultCompletionCmd()
	c, rest, err := top.Find(args)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	err = c.ParseFlags(rest)
	_, valueless := errors.AsType[*pflag.ValueRequiredError](err)
	if valueless && !whole { // a sentence may name a flag without its value
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.CommandPath(), err)
	}
	left := c.Flags().Args()
	if c.HasSubCommands() && len(left) > 0 {
		return fmt.Errorf("%s has no command %q", c.CommandPath(), left[0])
	}
	if !whole {
		return nil
	}
	if err := c.ValidateArgs(left); err != nil {
		return err
	}
	return errors.Join(c.ValidateRequiredFlags(), c.ValidateFlagGroups())
}

func TestEveryCommandOfTheDocumentsIsAccepted(t *testing.T) {
	seen := 0
	for _, p := range everyPage(t) {
		for _, b := range p.Blocks {
			if b.Marks[unchecked] != "" || b.Lang == synopsis && path.Dir(p.Name) == "docs/commands" {
				continue
			}
			calls, err := b.Calls("paictl")
			if !assert.NoError(t, err) {
				continue
			}
			for _, c := range calls {
				seen++
				assert.NoError(t, accepts(c.Args, true), "%s:%d: %s", p.Name, c.Line, c.Text)
			}
		}
	}
	assert.Greater(t, seen, 250, "the commands are found")
}

// In a sentence, a command may be incomplete, but it must exist.
func TestEveryCommandInASentenceIsThere(t *testing.T) {
	seen := 0
	for _, p := range everyPage(t) {
		for _, c := range p.Inline("paictl") {
			if strings.ToUpper(c.Args[0]) == c.Args[0] || strings.HasPrefix(c.Args[0], "…") { // a stand-in: COMMAND
				continue
			}
			seen++
			assert.NoError(t, accepts(c.Args, false), "%s:%d: %s", p.Name, c.Line, c.Text)
		}
	}
	assert.Greater(t, seen, 100, "the commands are found")
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	for _, line := range []string{"cluster upp", "nothing", "job why", "job list --no-such-flag", "job list extra", "service start -n", "version -o"} {
		require.Error(t, accepts(strings.Fields(line), true), line)
	}
	require.NoError(t, accepts([]string{"job", "why"}, false))
	require.Error(t, accepts([]string{"job", "whyy"}, false))
	require.Error(t, accepts([]string{"job", "why", "--no-such-flag"}, false))
}

func TestMarksSayWhy(t *testing.T) {
	for _, p := range everyPage(t) {
		for _, b := range p.Blocks {
			if reason, ok := b.Marks[unchecked]; ok {
				assert.Greater(t, len(strings.Fields(reason)), 2, "%s: give the reason in a few words", b.Place())
			}
		}
	}
}
