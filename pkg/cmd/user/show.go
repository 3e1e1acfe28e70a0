package user

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// ShowOptions are the options of "paictl user show".
type ShowOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Name       string
}

// NewCmdShow returns "paictl user show".
func NewCmdShow(f *cmdutil.Factory) *cobra.Command {
	opts := &ShowOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a person, with the grants of all their groups",
		Example: `  paictl user show ann
  paictl user show ann -o json | jq .virtualClusters`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return showRun(cmd.Context(), opts)
		},
		ValidArgsFunction: CompleteUsers(f, &opts.Connection, 1),
	}
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func showRun(ctx context.Context, opts *ShowOptions) error {
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	u, err := p.User(ctx, opts.Name)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, u, cmdutil.Table{})
	}
	r := cmdutil.NewRows(opts.Factory.IO.Out)
	r.Add("Name:", u.Name)
	add := func(label, text string) {
		if text != "" {
			r.Add(label, text)
		}
	}
	add("Display name:", u.DisplayName)
	add("E-mail:", u.Email)
	r.Add("State:", state(u))
	r.Add("Groups:", listed(u.Groups))
	switch {
	case u.Administrator || u.AllVCs:
		r.Add("Virtual clusters:", "all")
	case len(u.VCs) == 0:
		r.Add("Virtual clusters:", "-")
	}
	for _, g := range u.VCs {
		r.Add("  "+g.Name, Grant(g))
	}
	if u.Spec != nil {
		add("Default virtual cluster:", u.Spec.DefaultVirtualCluster)
	}
	r.Add("Storages:", listed(u.Storages))
	r.Add("Pages:", listed(u.Pages))
	for _, id := range u.Identities {
		r.Add("Signs in as:", id.Subject+" of "+id.Provider)
	}
	for _, k := range u.SSHKeys {
		r.Add("SSH key:", k.Title)
	}
	r.Add("Added:", u.Created.Local().Format(time.DateTime))
	if u.LastSignIn != nil {
		r.Add("Last sign-in:", u.LastSignIn.Local().Format(time.DateTime))
	}
	return r.Flush()
}

// Grant describes in words the rights that a group grants in a virtual cluster.
func Grant(g v1.VCGrant) string {
	parts := []string{"submit"}
	if g.SeeJobs {
		parts = append(parts, "see jobs of others")
	}
	if g.MaxPriority != "" {
		parts = append(parts, fmt.Sprintf("priority up to %s", g.MaxPriority))
	}
	if g.HostNetwork {
		parts = append(parts, "machines' network")
	}
	return strings.Join(parts, ", ")
}
