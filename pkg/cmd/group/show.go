package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// ListOptions are the options of "paictl group list".
type ListOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
}

// NewCmdList returns "paictl group list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List groups, with their grants and the number of their members",
		Example: `  paictl group list
  paictl group list -o name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	p, err := user.Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	groups, err := p.Groups(ctx)
	if err != nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"NAME", "MEMBERS", "VIRTUAL CLUSTERS", "STORAGES", "PAGES", "DESCRIPTION"}}
	for i := range groups {
		g := &groups[i]
		t.Rows = append(t.Rows, []string{g.Name, strconv.Itoa(len(g.Members)), vcs(g), listed(g.Storages), listed(g.Pages), cmp.Or(g.Description, "-")})
	}
	return opts.Output.Write(opts.Factory.IO.Out, struct {
		Items []user.Group `json:"items"`
	}{groups}, t)
}

func vcs(g *user.Group) string {
	if g.Administrator || g.AllVirtualClusters {
		return "all"
	}
	var out []string
	for _, vc := range g.VirtualClusters {
		out = append(out, vc.Name)
	}
	return listed(out)
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "-") }

// ShowOptions are the options of "paictl group show".
type ShowOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Name       string
}

// NewCmdShow returns "paictl group show".
func NewCmdShow(f *cmdutil.Factory) *cobra.Command {
	opts := &ShowOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a group grants, and who is in it",
		Example: `  paictl group show vision
  paictl group show vision -o json | jq -r '.members[]'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return showRun(cmd.Context(), opts)
		},
		ValidArgsFunction: user.CompleteGroups(f, &opts.Connection, 1),
	}
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func showRun(ctx context.Context, opts *ShowOptions) error {
	p, err := user.Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	g, err := p.Group(ctx, opts.Name)
	if err != nil {
		return err
	}
	return write(opts.Factory, &opts.Output, g)
}

// write prints one group.
func write(f *cmdutil.Factory, o *cmdutil.Output, g *user.Group) error {
	if !o.Is("text") {
		return o.Write(f.IO.Out, g, cmdutil.Table{})
	}
	r := cmdutil.NewRows(f.IO.Out)
	r.Add("Name:", g.Name)
	if g.Description != "" {
		r.Add("Description:", g.Description)
	}
	if g.Administrator {
		r.Add("Administrator:", "yes")
	}
	switch {
	case g.Administrator || g.AllVirtualClusters:
		r.Add("Virtual clusters:", "all")
	case len(g.VirtualClusters) == 0:
		r.Add("Virtual clusters:", "-")
	default:
		r.Add("Virtual clusters:", "")
	}
	for _, vc := range g.VirtualClusters {
		r.Add("  "+vc.Name, user.Grant(vc))
	}
	r.Add("Storages:", listed(g.Storages))
	r.Add("Pages:", listed(g.Pages))
	for _, e := range g.External {
		r.Add("Everyone in:", e.Name+" of "+e.Provider)
	}
	r.Add("Members:", listed(g.Members))
	return r.Flush()
}

// DeleteOptions are the options of "paictl group delete".
type DeleteOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Name       string
	Yes        bool
}

// NewCmdDelete returns "paictl group delete".
func NewCmdDelete(f *cmdutil.Factory) *cobra.Command {
	opts := &DeleteOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a group, and remove its members from it",
		Long: `The members lose the grants of the group at once. Running jobs continue.

The group default stays, and so does the last group of administrators.`,
		Example: `  paictl group delete vision`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return deleteRun(cmd.Context(), opts)
		},
		ValidArgsFunction: user.CompleteGroups(f, &opts.Connection, 1),
	}
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

func deleteRun(ctx context.Context, opts *DeleteOptions) error {
	p, err := user.Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	g, err := p.Group(ctx, opts.Name)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Delete the group %s, which has %s?", opts.Name, plural.Of(len(g.Members), "member"))
	if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "the deletion of "+opts.Name, question); err != nil {
		return err
	}
	if err := p.DeleteGroup(ctx, opts.Name); err != nil {
		return err
	}
	fmt.Fprintf(opts.Factory.IO.Out, "The group %s is deleted.\n", opts.Name)
	return nil
}

// newCmdMember returns "paictl group add-member" or "paictl group remove-member".
func newCmdMember(f *cmdutil.Factory, add bool) *cobra.Command {
	var o connection.Flags
	cmd := &cobra.Command{
		Use:     "remove-member GROUP NAME...",
		Short:   "Remove people from a group",
		Long:    `People who are in the group because a provider of sign-ins says so stay in it: remove them there.`,
		Example: `  paictl group remove-member vision bob`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return memberRun(cmd.Context(), f, o, args[0], args[1:], add)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return user.CompleteGroups(f, &o, 1)(cmd, args, word)
			}
			return user.CompleteUsers(f, &o, 0)(cmd, args[1:], word)
		},
	}
	if add {
		cmd.Use, cmd.Short, cmd.Long = "add-member GROUP NAME...", "Add people to a group", "They have the grants of the group at once, also in their open sessions."
		cmd.Example = `  paictl group add-member vision ann bob`
	}
	o.AddFlags(f, cmd)
	return cmd
}

func memberRun(ctx context.Context, f *cmdutil.Factory, o connection.Flags, group string, people []string, add bool) error {
	p, err := user.Open(f, o)
	if err != nil {
		return err
	}
	if _, err := p.Group(ctx, group); err != nil {
		return err
	}
	for _, name := range people {
		u, err := p.Update(ctx, name, func(s *v1.UserSpec) error {
			s.Groups = slices.DeleteFunc(s.Groups, func(g string) bool { return g == group })
			if add {
				s.Groups = append(s.Groups, group)
			}
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(f.IO.Out, "%s is in %s.\n", name, listed(u.Groups))
	}
	return nil
}
