package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// CertsOptions are the options of "paictl cluster certs list", "renew" and "rotate-ca".
type CertsOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	Within  int // days; a negative number means all

	DryRun, Yes bool // of rotate-ca
	How         cluster.AuthorityOptions
}

// NewCmdCerts returns "paictl cluster certs".
func NewCmdCerts(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "certs",
		Aliases: []string{"certificates"},
		Short:   "List and renew the cluster's certificates, replace its authorities",
		Long: `Shows when the certificates of the machines expire, and renews those of the control plane. They are renewed without it: kubelets
rotate theirs, and a timer on each master renews the others 60 days before they expire. The authorities that sign them live for ten
years, and are replaced by "rotate-ca".`,
		Example: `  paictl cluster certs list -p ./cluster
  paictl cluster certs renew -p ./cluster
  paictl cluster certs rotate-ca -p ./cluster`,
	}
	cmd.AddCommand(newCmdCertsList(f), newCmdCertsRenew(f), newCmdCertsRotateCA(f))
	return cmd
}

func newCmdCertsList(f *cmdutil.Factory) *cobra.Command {
	opts := &CertsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the certificates on the machines, the first to expire first",
		Long: `Asks the machines for their certificates: those of the control plane, the kubelets' and the authorities'. A kubelet has two: kubelet,
by which it logs in to the API, and kubelet-server, which the API server and Prometheus verify. No private key leaves a machine.`,
		Example: `  paictl cluster certs list -p ./cluster
  paictl cluster certs list -p ./cluster --within 30
  paictl cluster certs list -p ./cluster -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return certsListRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddLimit(cmd)
	cmd.Flags().IntVar(&opts.Within, "within", -1, "only those that expire within this number of `DAYS`")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml", "name")
	return cmd
}

func certsListRun(ctx context.Context, opts *CertsOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	st, err := cluster.GetStatus(ctx, s.Spec, s.Options)
	if st == nil {
		return err
	}
	certs := slices.DeleteFunc(st.Certificates, func(c checks.Certificate) bool {
		return opts.Within >= 0 && c.Error == "" && c.Days > opts.Within
	})
	if werr := opts.Output.Write(opts.Factory.IO.Out, certs, certsTable(certs)); werr != nil {
		return werr
	}
	session.WriteTroubles(opts.Factory.IO.Err, st.Machines)
	return err
}

func certsTable(certs []checks.Certificate) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"HOST", "CERTIFICATE", "EXPIRES", "LEFT", "SIGNED BY", "RENEWED BY"}}
	for _, c := range certs {
		expires, left := c.Expires.Format(time.DateOnly), c.Left()
		if c.Error != "" {
			expires, left = "unreadable", c.Error
		}
		signer := c.Issuer
		if c.SelfSigned {
			signer = "itself"
		}
		t.Rows = append(t.Rows, []string{c.Host, c.Name, expires, left, signer, c.RenewedBy()})
	}
	return t
}

func newCmdCertsRenew(f *cmdutil.Factory) *cobra.Command {
	opts := &CertsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "renew",
		Short: "Renew the control plane's certificates now",
		Long: `Renews the certificates of the control plane on one master after the other and restarts the programs that use them: etcd, API
server, controller manager and scheduler. It waits for each of them. With several masters the API answers all the time. It stops at the
first master on which that fails. It doesn't renew the certificates of authorities, and kubelets rotate theirs by themselves.`,
		Example: `  paictl cluster certs renew -p ./cluster
  paictl cluster certs renew -p ./cluster --within 90
  paictl cluster certs renew -p ./cluster --limit master-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Within < 1 {
				return cmdutil.Usagef("--within %d: give at least one day", opts.Within)
			}
			return certsRenewRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddLimit(cmd)
	cmd.Flags().IntVar(&opts.Within, "within", 3650, "only those that expire within this number of `DAYS`")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func certsRenewRun(ctx context.Context, opts *CertsOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Format: opts.Output.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	err = cluster.RenewCertificates(ctx, s.Spec, s.Options, opts.Within)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	return err
}

func newCmdCertsRotateCA(f *cmdutil.Factory) *cobra.Command {
	opts := &CertsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "rotate-ca",
		Short: "Replace the certificate authorities of the cluster",
		Long: `Makes new certificate authorities for Kubernetes, etcd and the API's extensions, and has them take the place of the old ones in three
steps, each on one master after the other, then on the other machines:

  trust    the machine trusts both the old and the new authorities
  sign     it gets certificates of the new authorities, for the keys that it has
  forget   it trusts the old authorities no longer

Jobs continue during the rotation, and so does the API if there are several masters. Programs that know only the old authority of the API
still trust its servers, which send a certificate of the new authority that the old one signed. The programs in kube-system, kube-flannel
and pai-system are restarted at the end; restart others that use the API.

All kubeconfigs become invalid, including stolen copies: get a new one with "paictl cluster kubeconfig". Tokens stay valid.

All masters have to answer. Before the last step, all nodes must have completed the earlier ones. With --leave-behind it continues without
nodes that don't answer; add them later with --catch-up. Run it again if it is interrupted; until it is complete, "cluster up" and
"cluster upgrade" refuse to run.`,
		Example: `  paictl cluster certs rotate-ca -p ./cluster --dry-run
  paictl cluster certs rotate-ca -p ./cluster
  paictl cluster certs rotate-ca -p ./cluster --catch-up`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return certsRotateCARun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&opts.How.Leave, "leave-behind", false, "continue without nodes that don't answer")
	cmd.Flags().BoolVar(&opts.How.CatchUp, "catch-up", false, "don't make new authorities: copy those of the masters to machines that were left behind")
	cmd.MarkFlagsMutuallyExclusive("leave-behind", "catch-up")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

// goOn returns the command to run for the machines that the rotation could not change. typed is the command that the user ran. If machines were
// left behind, the command must not start another rotation.
func (opts *CertsOptions) goOn(typed string) string {
	if opts.How.Leave {
		return "paictl cluster certs rotate-ca --catch-up -p " + hint.Quote(opts.Flags.Dir)
	}
	return typed
}

func certsRotateCARun(ctx context.Context, opts *CertsOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Format: opts.Output.String(), ReadOnly: opts.DryRun})
	if err != nil {
		return err
	}
	defer s.Close()
	if !opts.DryRun && !opts.How.CatchUp {
		if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "replacing the cluster's authorities",
			"Replace the cluster's certificate authorities? Kubeconfigs that people have become invalid."); err != nil {
			return err
		}
	}
	s.Options.Retry = func([]string) string { return opts.goOn(s.Options.Command) }
	changes, err := cluster.RotateAuthorities(ctx, s.Spec, s.Options, opts.How)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if opts.DryRun && len(changes) > 0 && !opts.Output.Is("json") {
		return cmp.Or(progress.WritePlan(opts.Factory.IO.Out, changes), err)
	}
	ended := err == nil || opts.How.Leave && errors.As(err, new(*engine.PartialError))
	if ended && !opts.DryRun && !opts.How.CatchUp && !opts.Output.Is("json") {
		_, werr := fmt.Fprintln(opts.Factory.IO.Err, "\nYour kubeconfig is no longer valid:\n  paictl cluster kubeconfig -p "+hint.Quote(opts.Flags.Dir))
		err = cmp.Or(err, werr)
	}
	return err
}
