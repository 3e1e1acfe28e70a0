package service

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
)

// ListOptions are the options of "paictl service list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Output  cmdutil.Output
}

// NewCmdList returns "paictl service list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all services and their purpose",
		Long: `Lists the services of the configuration: those that are part of paictl and those that
services-configuration.yaml adds. "paictl service status" shows their state.

Without -p it asks the cluster for its configuration; with -p it reads a folder and needs no cluster. If
sections of services have mistakes, it reports them on stderr, and lists the services anyway.`,
		Example: `  paictl service list
  paictl service list -p ./cluster
  paictl service list -o json | jq -r '.[] | select(.enabled) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addDir(cmd, f, "use the configuration of this folder instead of the cluster's")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	d, c, err := opts.Flags.loadReadable(ctx, opts.Factory)
	if err != nil {
		return c.explain(err)
	}
	if err := tellMistakes(opts.Factory, d.Mistakes); err != nil {
		return err
	}
	all := d.Describe()
	t := cmdutil.Table{Header: []string{"NAME", "ENABLED", "PLACEMENT", "REQUIRES", "VERSION", "SOURCE", "DESCRIPTION"}}
	for _, s := range all {
		t.Rows = append(t.Rows, []string{
			s.Name, yesNo(s.Enabled), cmp.Or(strings.Join(s.Placement, ","), "-"), cmp.Or(strings.Join(s.Requires, ","), "-"),
			cmp.Or(versionOf(s), "-"), s.Source, s.Description,
		})
	}
	return opts.Output.Write(opts.Factory.IO.Out, all, t)
}

// versionOf returns the version of a service's program, or the version of its chart if the former isn't known.
func versionOf(s services.Description) string {
	if s.AppVersion != "" {
		return s.AppVersion
	}
	return s.Version
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
