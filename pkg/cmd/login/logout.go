package login

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/client/login"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// LogoutOptions are the options of "paictl logout".
type LogoutOptions struct {
	Factory *cmdutil.Factory
	Name    string
	// Forget means that the entry of the cluster is removed too, and not only the session.
	Forget bool
}

// NewCmdLogout returns "paictl logout".
func NewCmdLogout(f *cmdutil.Factory) *cobra.Command {
	opts := &LogoutOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "logout [NAME]",
		Short: "Sign out at a cluster's server",
		Long: `Ends your session at the server, which revokes its tokens at once, and removes it here. Without NAME it is the
cluster where you signed in last. Address and authority of the cluster are kept, for the next "paictl login
NAME"; --forget removes them as well.`,
		Example: `  paictl logout
  paictl logout lab --forget`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return connection.Names(f), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			return logoutRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Forget, "forget", false, "also remove the address and the authority of the cluster")
	return cmd
}

func logoutRun(ctx context.Context, opts *LogoutOptions) error {
	store := connection.Store(opts.Factory)
	file, err := store.Read()
	if err != nil {
		return err
	}
	name := cmp.Or(opts.Name, file.Current)
	if name == "" {
		opts.Factory.IO.Say("you are not signed in")
		return nil
	}
	held := (*login.Cluster)(nil)
	refresh := secret.String("")
	err = store.Change(ctx, func(f *login.File) error {
		if held = f.Clusters[name]; held == nil {
			return hint.Errorf("see where you are signed in with: paictl whoami --all", "there is no cluster %s where you signed in", name)
		}
		refresh = held.Refresh
		f.Clusters[name] = &login.Cluster{Server: held.Server, CA: held.CA, User: held.User}
		if opts.Forget {
			delete(f.Clusters, name)
			if f.Current == name {
				f.Current = ""
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !refresh.IsSet() {
		opts.Factory.IO.Say("you are not signed in at %s", name)
		return nil
	}
	s, err := client.New(client.Options{URL: held.Server, CA: []byte(held.CA), Version: opts.Factory.Version})
	if err == nil {
		err = s.Revoke(ctx, refresh)
	}
	if err != nil {
		return hint.Wrap(fmt.Errorf("you are signed out here, but the server couldn't end the session, which stays valid until it isn't used for 30 days: %w", err),
			"change your password when the server answers: that ends all sessions")
	}
	opts.Factory.IO.Say("you are signed out at %s", name)
	return nil
}
