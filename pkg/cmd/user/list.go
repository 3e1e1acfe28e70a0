package user

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// ListOptions are the options of "paictl user list".
type ListOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Group      string
}

// NewCmdList returns "paictl user list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List people and their groups",
		Example: `  paictl user list
  paictl user list --group vision
  paictl user list -o json | jq -r '.items[] | select(.administrator) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Group, "group", "", "only people in this group")
	_ = cmd.RegisterFlagCompletionFunc("group", CompleteGroups(f, &opts.Connection, cmdutil.FlagValue))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	users, err := p.Users(ctx)
	if err != nil {
		return err
	}
	if opts.Group != "" {
		if _, err := p.Group(ctx, opts.Group); err != nil {
			return err
		}
		users = slices.DeleteFunc(users, func(u User) bool { return !slices.Contains(u.Groups, opts.Group) })
	}
	t := cmdutil.Table{Header: []string{"NAME", "STATE", "GROUPS", "VIRTUAL CLUSTERS", "EMAIL"}}
	for i := range users {
		u := &users[i]
		t.Rows = append(t.Rows, []string{u.Name, state(u), listed(u.Groups), vcs(u.VCs, u.AllVCs || u.Administrator), cmp.Or(u.Email, "-")})
	}
	return opts.Output.Write(opts.Factory.IO.Out, struct {
		Items []User `json:"items"`
	}{users}, t)
}

func state(u *User) string {
	switch {
	case u.Disabled:
		return "disabled"
	case u.Administrator:
		return "administrator"
	}
	return "enabled"
}

// listed returns names as the text of one cell.
func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "-") }

func vcs(grants []v1.VCGrant, all bool) string {
	if all {
		return "all"
	}
	var names []string
	for _, g := range grants {
		names = append(names, g.Name)
	}
	return listed(names)
}
