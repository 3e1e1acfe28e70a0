package service

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services"
)

// DeleteOptions are the options of "paictl service delete".
type DeleteOptions struct {
	Factory        *cmdutil.Factory
	Flags          Flags
	Output         cmdutil.Output
	Wait           time.Duration
	DryRun         bool
	WithDependents bool
	Yes            bool
}

// NewCmdDelete returns "paictl service delete".
func NewCmdDelete(f *cmdutil.Factory) *cobra.Command {
	opts := &DeleteOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "delete [NAME...]",
		Short: "Stop services and remove their data",
		Long: `Stops services as "paictl service stop" does, then removes their volume claims, the volumes behind
them, and the folders of local volumes that paictl made on the machines. It shows what will be removed and
asks for the cluster-id; in scripts use --yes.

Data on NFS servers and in folders that you configured yourself stays, and so do the configuration,
the namespaces and the jobs.`,
		Example: `  paictl service delete prometheus --with-dependents
  paictl service delete --dry-run
  paictl service delete --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Wait <= 0 {
				return cmdutil.Usagef("--wait %s: data that pods use can't be removed; give a duration", opts.Wait)
			}
			return deleteRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addNames(cmd, "only these services, separated by commas", "skip these services, separated by commas")
	addWait(cmd, &opts.Wait)
	cmd.Flags().BoolVar(&opts.WithDependents, "with-dependents", false, "also delete the services that require those named")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be deleted")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask for the cluster-id, for scripts")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func deleteRun(ctx context.Context, opts *DeleteOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	o := opts.Flags.options(opts.Wait)
	o.DryRun, o.WithDependents = opts.DryRun, opts.WithDependents
	o.Confirm = func(_ context.Context, d services.Deletion) error { return opts.confirm(d, c.cluster.Context) }
	return c.run(ctx, opts.Factory, opts.Output.String(), o, c.Delete)
}

// confirm lists everything that will be deleted, and asks the user to type the cluster ID. If the cluster has no configuration, the user must
// type the name of the context.
func (opts *DeleteOptions) confirm(d services.Deletion, kubeContext string) error {
	if opts.Yes {
		return nil
	}
	ask := opts.Factory.IO
	if !ask.CanPrompt() {
		return cmdutil.Usagef("service delete must be confirmed, but there is no terminal to ask on: add --yes")
	}
	id := cmp.Or(d.ClusterID, kubeContext)
	showDeletion(ask.Err, d, id)
	fmt.Fprintf(ask.Err, "Type %s to continue: ", id)
	answer, err := prompt.Line(ask.In)
	if err != nil {
		return err
	}
	if answer != id {
		return hint.Errorf("nothing was changed", "%q is not %q: not confirmed", answer, id)
	}
	return nil
}

func showDeletion(w io.Writer, d services.Deletion, id string) {
	for _, text := range d.Warnings {
		fmt.Fprintln(w, "Warning:", text)
	}
	fmt.Fprintf(w, "This stops on cluster %s: %s\n", id, strings.Join(d.Services, ", "))
	if len(d.Volumes) == 0 {
		fmt.Fprintln(w, "They store no data.")
		return
	}
	fmt.Fprintln(w, "and deletes their data permanently:")
	for _, v := range d.Volumes {
		fmt.Fprintf(w, "  %s: %s\n", v.Service, v)
	}
}
