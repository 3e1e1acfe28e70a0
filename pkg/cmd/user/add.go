package user

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// AddOptions are the options of "paictl user add".
type AddOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	User       people.NewUser
	Admin      bool
	Password   passwordFlags
}

// NewCmdAdd returns "paictl user add".
func NewCmdAdd(f *cmdutil.Factory) *cobra.Command {
	opts := &AddOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a person",
		Long: `Adds a person, who can sign in at once.

paictl prompts for the password on the terminal, or reads it with --password-stdin. --generate-password makes one and prints it once;
--no-password adds a person who signs in another way, or gets a password later. A password has 10 characters or more, and is
refused if it is easy to guess.

Without --group the person is in the group default.

A name that jobs have, such as that of a person who was removed, is refused. --take-over-history gives it to a new
person, who then owns these jobs, and the folders of that name on storages. Old passwords and tokens are not valid for them.`,
		Example: `  paictl user add ann --administrator
  paictl user add bob --email bob@example.org --group vision --group nlp
  paictl user add ci --generate-password
  printf %s "$PASSWORD" | paictl user add eve --password-stdin`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.User.Name = args[0]
			if err := opts.Password.check(); err != nil {
				return err
			}
			return addRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.User.Email, "email", "", "e-mail address")
	fl.StringVar(&opts.User.DisplayName, "display-name", "", "full name, for display")
	fl.StringSliceVar(&opts.User.Groups, "group", nil, "group of the person (repeatable, or comma-separated; default: default)")
	fl.BoolVar(&opts.Admin, "administrator", false, "also add the person to a group of administrators: "+v1.GroupAdministrators+", or another one if that group doesn't make administrators")
	fl.BoolVar(&opts.User.TakeOver, "take-over-history", false, "take a name that jobs have, with these jobs")
	opts.Password.add(cmd, true)
	_ = cmd.RegisterFlagCompletionFunc("group", CompleteGroups(f, &opts.Connection, cmdutil.FlagValue))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// withAdministrators adds a group whose members are administrators to the names of groups. If such a group is among the names, it returns them
// unchanged.
func withAdministrators(ctx context.Context, p *People, names []string) ([]string, error) {
	groups, err := p.Groups(ctx)
	if err != nil {
		return nil, err
	}
	var all []v1.GroupSpec
	for i := range groups {
		if g := &groups[i].GroupSpec; g.Administrator && slices.Contains(names, g.Name) {
			return names, nil
		}
		all = append(all, groups[i].GroupSpec)
	}
	name, err := people.AdministratorGroup(all)
	if err != nil {
		return nil, err
	}
	if names == nil {
		names = []string{v1.GroupDefault}
	}
	return append(slices.Clone(names), name), nil
}

// added is the output of "user add -o json". It contains the password if paictl has generated the password.
type added struct {
	*User
	Password string `json:"password,omitempty"`
}

func addRun(ctx context.Context, opts *AddOptions) error {
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	n := opts.User
	// Report an invalid name before the password is asked for.
	for _, err := range p.Check(ctx, []people.NewUser{n}) {
		if err != nil {
			return err
		}
	}
	if opts.Admin { // groups can exist before the first person
		if n.Groups, err = withAdministrators(ctx, p, n.Groups); err != nil {
			return err
		}
	}
	if n.Password, err = opts.Password.get(opts.Factory.IO, n.Name); err != nil {
		return err
	}
	u, err := p.Add(ctx, n)
	if err != nil {
		return err
	}
	return opts.tell(u, n.Password)
}

func (opts *AddOptions) tell(u *User, p secret.String) error {
	out := added{User: u}
	if opts.Password.Generate {
		out.Password = p.Reveal()
	}
	io := opts.Factory.IO
	if !opts.Output.Is("text") {
		return opts.Output.Write(io.Out, out, cmdutil.Table{})
	}
	fmt.Fprintf(io.Out, "Added %s to %s.\n", u.Name, listed(u.Groups))
	if out.Password != "" {
		fmt.Fprintf(io.Out, "The password is shown once: %s\n", out.Password)
	}
	return nil
}
