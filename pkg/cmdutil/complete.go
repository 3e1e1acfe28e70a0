package cmdutil

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	// CompletionTimeout is how long a completion waits for a cluster that doesn't respond.
	CompletionTimeout = 3 * time.Second
	// FlagValue is passed to Complete as the number of arguments if it completes the value of a flag. Such a value doesn't depend on the
	// arguments.
	FlagValue = -1
)

// Complete returns a function that completes up to most arguments, or any number of arguments if most is 0, with the words that the function
// words returns. A word may be followed by a tab and a description. Words that are already among the arguments are not offered. The shell
// doesn't show errors, so they are written to the log.
func (f *Factory) Complete(most int, words func(ctx context.Context, args []string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		out, err := words(ctx, args)
		if err != nil {
			f.Log.DebugContext(ctx, "complete a command line", "error", err)
		}
		return slices.DeleteFunc(out, func(w string) bool {
			word, _, _ := strings.Cut(w, "\t")
			return most != FlagValue && slices.Contains(args, word)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}
