package job

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// TemplateNamesOptions are the options of "paictl job template remove" and "star".
type TemplateNamesOptions struct {
	Factory *cmdutil.Factory
	Flags   TemplateFlags
	Names   []string
	Yes     bool
	// Undo removes stars instead of adding them.
	Undo bool
}

func newCmdTemplateRemove(f *cmdutil.Factory) *cobra.Command {
	opts := &TemplateNamesOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "remove NAME...",
		Aliases: []string{"rm", "delete"},
		Short:   "Remove templates",
		Long:    `Removes your templates; an administrator removes anyone's. Jobs that were submitted from them stay. This can't be undone.`,
		Example: `  paictl job template remove train
  paictl job template remove train "BERT (large)" --yes`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: opts.Flags.completeTemplates(f, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			return opts.Flags.eachTemplate(cmd.Context(), f, args, func(c *client.Server, t *api.Template) error {
				if err := prompt.Confirm(f.IO, opts.Yes, "the removal of "+titled(t), fmt.Sprintf("Remove the template %s, which is for %s?", titled(t), sharedWith(t))); err != nil {
					return err
				}
				if err := c.RemoveTemplate(cmd.Context(), t.ID); err != nil {
					return err
				}
				f.IO.Say("%s is removed", titled(t))
				return nil
			})
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	return cmd
}

func newCmdTemplateStar(f *cmdutil.Factory) *cobra.Command {
	opts := &TemplateNamesOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "star NAME...",
		Short: "Give templates a star, or remove yours",
		Long:  `Gives templates that you like a star. "paictl job template list" shows how many each has. Each person has one for each template.`,
		Example: `  paictl job template star ann/train
  paictl job template star ann/train --undo`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: opts.Flags.completeTemplates(f, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			return opts.Flags.eachTemplate(cmd.Context(), f, args, func(c *client.Server, t *api.Template) error {
				made, err := c.StarTemplate(cmd.Context(), t.ID, !opts.Undo)
				if err != nil {
					return err
				}
				f.IO.Say("%s has %s", titled(made), plural.Of(made.Stars, "star"))
				return nil
			})
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().BoolVar(&opts.Undo, "undo", false, "take your star away")
	return cmd
}
