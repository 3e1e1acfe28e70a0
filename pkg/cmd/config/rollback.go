package config

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
)

// RollbackOptions are the options of "paictl config rollback".
type RollbackOptions struct {
	Factory  *cmdutil.Factory
	Kube     kube.Options
	Output   cmdutil.Output
	Revision int
	Message  string
	Yes      bool
	DryRun   bool
}

// NewCmdRollback returns "paictl config rollback".
func NewCmdRollback(f *cmdutil.Factory) *cobra.Command {
	opts := &RollbackOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Go back to an earlier revision of the cluster's configuration",
		Long: `Pushes the content of an earlier revision, including passwords, as a new revision. It shows what
differs and asks first. To apply it to the services, run: paictl service start.`,
		Example: `  paictl config rollback 7
  paictl config rollback 7 --dry-run`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeRevisions(cmd.Context(), opts.Kube), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Revision, err = parseRevision(args[0]); err != nil {
				return err
			}
			if len(opts.Message) > store.MaxMessage {
				return cmdutil.Usagef("the message is longer than %d bytes (see %s --help)", store.MaxMessage, cmd.CommandPath())
			}
			return rollbackRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	fl := cmd.Flags()
	fl.StringVarP(&opts.Message, "message", "m", "", "reason, recorded in the history")
	fl.BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "show what differs, and write nothing")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func rollbackRun(ctx context.Context, opts *RollbackOptions) error {
	s, err := openStored(opts.Kube)
	if err != nil {
		return err
	}
	d, err := s.RollbackDraft(ctx, opts.Revision)
	if err != nil {
		return s.cluster.Explain(err)
	}
	if opts.DryRun {
		return showDraft(opts.Factory.IO, s, &opts.Output, d)
	}
	if len(d.Changes) > 0 {
		if err := writeChanges(opts.Factory.IO.Err, d.Changes); err != nil {
			return err
		}
		question := fmt.Sprintf("Roll cluster %s (%s) back to revision %d?", d.Head.ClusterID, s.cluster.Server, opts.Revision)
		if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "the rollback", question); err != nil {
			return err
		}
	}
	r, err := s.Push(ctx, d, store.Entry{By: prompt.Operator(), Message: rollbackMessage(opts)})
	if err != nil {
		return s.cluster.Explain(err)
	}
	s.publish(ctx, opts.Factory, "paictl config rollback")
	return tell(opts.Factory.IO, s, &opts.Output, d, r)
}

// rollbackMessage returns the message for the history. It is truncated to the maximum length, but not within a character.
func rollbackMessage(opts *RollbackOptions) string {
	message := fmt.Sprintf("rollback to revision %d", opts.Revision)
	if opts.Message != "" {
		message += ": " + opts.Message
	}
	end := min(len(message), store.MaxMessage)
	for end > 0 && end < len(message) && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
