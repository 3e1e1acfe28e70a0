package cmdutil

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	// CompletionTimeout limits how long the shell waits for a cluster that doesn't respond.
	CompletionTimeout = 3 * time.Second
	// FlagValue is the number of arguments of Complete for the value of a flag, which doesn't depend on arguments.
	FlagValue = -1
)

// Complete completes up to most arguments, or any number if most is 0, with words that the cluster returns. A word may have a
// description after a tab. An argument is not completed a second time. The shell shows no errors, so they go to the log.
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
