package login

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// WhoamiOptions are the options of "paictl whoami".
type WhoamiOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Server  string
	// All lists all clusters where the user is signed in.
	All    bool
	Output cmdutil.Output
}

// NewCmdWhoami returns "paictl whoami".
func NewCmdWhoami(f *cmdutil.Factory) *cobra.Command {
	opts := &WhoamiOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show your user name, the cluster where you are signed in, and what you may use",
		Long: `Shows your user on the server, with your groups, and the virtual clusters, storages and pages that they grant.
If you aren't signed in, it shows which kubeconfig "paictl job" uses.

--all lists all clusters where you signed in, without a request to them.`,
		Example: `  paictl whoami
  paictl whoami --all
  paictl whoami --server lab -o json | jq .grants`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return whoamiRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	connection.AddFlag(f, cmd, &opts.Server)
	cmd.Flags().BoolVar(&opts.All, "all", false, "list the clusters where you signed in")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// known is the output of "whoami --all -o json" about one cluster.
type known struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	User    string `json:"user,omitempty"`
	Signed  bool   `json:"signedIn"`
	Current bool   `json:"current"`
}

func whoamiRun(ctx context.Context, opts *WhoamiOptions) error {
	if opts.All {
		return opts.list()
	}
	w, err := connection.Choose(opts.Factory, opts.Kube, opts.Server)
	if err != nil {
		return err
	}
	if w == nil {
		return opts.kubeconfig()
	}
	me, err := w.Server.WhoAmI(ctx)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, me, cmdutil.Table{})
	}
	rows := cmdutil.NewRows(opts.Factory.IO.Out)
	line := func(what, text string) {
		if text != "" {
			rows.Add(what, text)
		}
	}
	line("User", me.Name)
	line("Name", me.DisplayName)
	line("E-mail", me.Email)
	at := "https://" + w.Server.Host()
	if w.Name != "" {
		at = w.Name + " (" + at + ")"
	}
	line("Server", at)
	line("Groups", cmp.Or(strings.Join(me.Groups, ", "), "none"))
	if me.Grants.Administrator {
		line("Administrator", "yes")
	}
	line("Virtual clusters", virtualClusters(&me.Grants))
	line("Default virtual cluster", me.DefaultVirtualCluster)
	line("Storages", strings.Join(me.Grants.Storages, ", "))
	line("Pages", strings.Join(me.Grants.Pages, ", "))
	line("Token", tokenLine(&me.Token, w.Fixed))
	return rows.Flush()
}

func virtualClusters(g *api.Grants) string {
	if g.AllVirtualClusters || g.Administrator {
		return "all"
	}
	var out []string
	for _, vc := range g.VirtualClusters {
		text := vc.Name
		if vc.SeeJobs {
			text += " (you see all jobs)"
		}
		out = append(out, text)
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

func tokenLine(t *api.Token, fixed bool) string {
	text := "of your session"
	if t.Application {
		text = "of an application"
	}
	if fixed {
		text += ", from " + connection.EnvToken
	}
	if len(t.Scopes) > 0 {
		text += ", for " + strings.Join(t.Scopes, ", ")
	}
	if t.Expires != nil && (t.Application || fixed) { // the token of a session is renewed
		text += ", until " + t.Expires.Local().Format(time.DateTime)
	}
	return text
}

// kubeconfig prints the cluster of the kubeconfig, which commands use if the user isn't signed in.
func (opts *WhoamiOptions) kubeconfig() error {
	c, err := kube.Open(opts.Kube)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, map[string]string{"context": c.Context, "server": c.Server}, cmdutil.Table{})
	}
	_, err = fmt.Fprintf(opts.Factory.IO.Out, "you are not signed in; paictl job uses %s, with the context %s of the kubeconfig\n", c.Server, c.Context)
	return err
}

// list prints the clusters where the user is signed in.
func (opts *WhoamiOptions) list() error {
	file, err := connection.Store(opts.Factory).Read()
	if err != nil {
		return err
	}
	all := []known{}
	t := cmdutil.Table{Header: []string{"NAME", "SERVER", "USER", "SIGNED IN", "CURRENT"}}
	yes := map[bool]string{true: "yes", false: "no"}
	for _, name := range file.Names() {
		c := file.Clusters[name]
		k := known{Name: name, Server: c.Server, User: c.User, Signed: c.Refresh.IsSet(), Current: name == file.Current}
		all = append(all, k)
		t.Rows = append(t.Rows, []string{k.Name, k.Server, cmp.Or(k.User, "-"), yes[k.Signed], yes[k.Current]})
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, all, t)
	}
	if len(all) == 0 {
		opts.Factory.IO.Say("you are not signed in; sign in: paictl login https://HOST")
		return nil
	}
	return opts.Output.WriteTable(opts.Factory.IO.Out, t)
}
