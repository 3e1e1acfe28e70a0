package user

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// LinkOptions are the options of "paictl user link".
type LinkOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Name       string
	Identity   v1.Identity
	Remove     bool
}

// NewCmdLink returns "paictl user link".
func NewCmdLink(f *cmdutil.Factory) *cobra.Command {
	opts := &LinkOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "link NAME --provider PROVIDER --subject SUBJECT",
		Short: "Link a person to their account at a provider of sign-ins",
		Long: `A provider (an issuer or a directory, see signIn in the configuration of rest-server) identifies a person by a subject. Anyone
who signs in there with the subject is this person here. Names and e-mail addresses are never compared: people may choose them.`,
		Example: `  paictl user link bob --provider lab --subject 248289761001
  paictl user link bob --provider lab --subject 248289761001 --remove`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if opts.Identity.Provider == "" || opts.Identity.Subject == "" {
				return cmdutil.Usagef("--provider and --subject are needed")
			}
			return linkRun(cmd.Context(), opts)
		},
		ValidArgsFunction: CompleteUsers(f, &opts.Connection, 1),
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.Identity.Provider, "provider", "", "name of the provider in the configuration")
	fl.StringVar(&opts.Identity.Subject, "subject", "", "subject by which the provider knows the person")
	fl.BoolVar(&opts.Remove, "remove", false, "remove the link")
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

func linkRun(ctx context.Context, opts *LinkOptions) error {
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	_, err = p.Update(ctx, opts.Name, func(s *v1.UserSpec) error {
		s.Identities = slices.DeleteFunc(s.Identities, func(id v1.Identity) bool { return id == opts.Identity })
		if !opts.Remove {
			s.Identities = append(s.Identities, opts.Identity)
		}
		return nil
	})
	if err != nil {
		return err
	}
	verb := "is"
	if opts.Remove {
		verb = "is no longer"
	}
	fmt.Fprintf(opts.Factory.IO.Out, "%s %s %s of %s.\n", opts.Name, verb, opts.Identity.Subject, opts.Identity.Provider)
	return nil
}
