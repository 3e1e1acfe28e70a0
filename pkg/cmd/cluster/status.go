package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// StatusOptions are the options of "paictl cluster status".
type StatusOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	Plan    bool
}

// NewCmdStatus returns "paictl cluster status". Tests pass runF, which replaces the function that runs the command.
func NewCmdStatus(f *cmdutil.Factory, runF func(context.Context, *StatusOptions) error) *cobra.Command {
	opts := &StatusOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show machines, control plane, certificates and who holds the cluster's lock",
		Long: `Asks every machine once and shows whether it is reachable and Ready, which programs run on it in
which version, the parts of the control plane, when certificates expire and whether they are renewed, and
who holds the cluster's lock. With --plan it also counts the changes that "cluster up" would make.

Machines that can't be reached are listed as Unreachable, and the exit code is 3. Machines of the layout that
are not in the cluster are listed as Outside, nodes that layout.yaml does not list as Unlisted; a line
below the table says what to do.`,
		Example: `  paictl cluster status -p ./cluster
  paictl cluster status -p ./cluster --plan
  paictl cluster status -p ./cluster -o json | jq '.certificates[0]'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return statusRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddLimit(cmd)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddBundle(cmd)
	cmd.Flags().BoolVar(&opts.Plan, "plan", false, "count the changes that \"cluster up\" would make; needs the bundle")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func statusRun(ctx context.Context, opts *StatusOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: opts.Plan, ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	st, err := cluster.GetStatus(ctx, s.Spec, s.Options)
	if st == nil {
		return err
	}
	if opts.Plan {
		changes, perr := cluster.Up(ctx, s.Spec, s.Options, cluster.UpOptions{})
		if changes == nil {
			return perr
		}
		n := len(changes)
		st.Pending = &n
	}
	if werr := writeStatus(opts, st); werr != nil {
		return werr
	}
	if partial, ok := errors.AsType[*engine.PartialError](err); ok {
		// The error itself is not printed, because the text below the table explains it.
		return &cmdutil.CodeError{Err: err, Code: partial.ExitCode(), Silent: true}
	}
	return err
}

func writeStatus(opts *StatusOptions, st *cluster.Status) error {
	w := opts.Factory.IO.Out
	if !opts.Output.IsTable() {
		return opts.Output.Write(w, st, machineTable(st))
	}
	fmt.Fprintf(w, "cluster %s (%s), %s, API %s at %s\n", st.Cluster, st.ClusterID, st.Kubernetes, st.API, st.Endpoint)
	if st.APIMessage != "" {
		fmt.Fprintf(w, "  %s\n", st.APIMessage)
	}
	switch {
	case st.VIP != nil && st.VIP.Holder == "":
		fmt.Fprintf(w, "virtual address %s of the API: no machine has it\n", st.VIP.Address)
	case st.VIP != nil && !st.VIP.Answers:
		fmt.Fprintf(w, "virtual address %s of the API: should be at %s, but the API doesn't answer there\n", st.VIP.Address, terminal.Word(st.VIP.Holder))
	case st.VIP != nil:
		fmt.Fprintf(w, "virtual address %s of the API: at %s\n", st.VIP.Address, terminal.Word(st.VIP.Holder))
	}
	if st.Lock != nil {
		fmt.Fprintf(w, "locked by %s, since %s\n", st.Lock.Owner, st.Lock.Since)
	}
	if st.Pending != nil {
		fmt.Fprintf(w, "pending: %s (see paictl cluster plan)\n", plural.Of(*st.Pending, "change"))
	}
	fmt.Fprintln(w)
	if err := opts.Output.Write(w, nil, machineTable(st)); err != nil {
		return err
	}
	session.WriteTroubles(w, st.Machines)
	for _, k := range st.Knocks {
		fmt.Fprintf(w, "\nwarning: %s was removed from the cluster and tries to join again, last at %s; the cluster refuses it\n  -> switch it off, or add it again: paictl node add %s=ADDRESS\n",
			terminal.Word(k.Host), k.Last.Local().Format(time.DateTime), terminal.Word(k.Host))
	}
	if len(st.Components) > 0 {
		fmt.Fprintln(w)
		if err := opts.Output.Write(w, nil, componentTable(st)); err != nil {
			return err
		}
	}
	return writeCertificates(w, &opts.Output, st)
}

func machineTable(st *cluster.Status) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"NAME", "ADDRESS", "ROLES", "STATE", "KUBELET", "CONTAINERD", "NOTE"}}
	for _, m := range st.Machines {
		state := m.State
		if m.Cordoned {
			state += ",cordoned"
		}
		note := strings.Join(append(append([]string{}, m.Pressure...), m.Message), " ")
		t.Rows = append(t.Rows, []string{m.Host, m.Address, strings.Join(m.Roles, ","), state, program(m.Kubelet), program(m.Containerd), strings.TrimSpace(note)})
	}
	return t
}

func program(p *cluster.ProgramStatus) string {
	switch {
	case p == nil:
		return "-"
	case p.State != "active":
		return strings.TrimSpace(p.Version + " " + p.State)
	}
	return p.Version
}

func componentTable(st *cluster.Status) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"COMPONENT", "HOST", "READY", "RESTARTS", "NOTE"}}
	for _, c := range st.Components {
		host, restarts := c.Host, fmt.Sprint(c.Restarts)
		if host == "" {
			host, restarts = "-", "-"
		}
		t.Rows = append(t.Rows, []string{c.Name, host, fmt.Sprintf("%d/%d", c.Ready, c.Desired), restarts, c.Message})
	}
	return t
}

// writeCertificates prints the certificates, grouped by name and day, because the certificates of many machines expire together. The groups that
// expire first come first.
func writeCertificates(w io.Writer, out *cmdutil.Output, st *cluster.Status) error {
	if len(st.Certificates) == 0 {
		return nil
	}
	type key struct{ name, day, err string }
	t := cmdutil.Table{Header: []string{"CERTIFICATE", "EXPIRES", "LEFT", "HOSTS"}}
	hosts := map[key][]string{}
	var order []key
	left := map[key]string{}
	for _, c := range st.Certificates {
		name := c.Name
		if c.SelfSigned {
			name += ", self-signed"
		}
		k := key{name, c.Expires.Format(time.DateOnly), c.Error}
		if hosts[k] == nil {
			order = append(order, k)
		}
		hosts[k] = append(hosts[k], c.Host)
		left[k] = c.Left()
	}
	for _, k := range order {
		row := []string{k.name, k.day, left[k], hostList(hosts[k], out.Is("wide"))}
		if k.err != "" {
			row[1], row[2] = "unreadable", k.err
		}
		t.Rows = append(t.Rows, row)
	}
	fmt.Fprintln(w)
	if err := out.Write(w, nil, t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nrenewal: %s\n", renewal(st.Renewal))
	warned := map[checks.Finding][]string{}
	var findings []checks.Finding
	for _, c := range st.Certificates {
		if f := c.Check(); f != nil {
			same := checks.Finding{Message: f.Message, Remedy: f.Remedy}
			if warned[same] == nil {
				findings = append(findings, same)
			}
			warned[same] = append(warned[same], c.Host)
		}
	}
	for _, f := range findings {
		fmt.Fprintf(w, "\nwarning: on %s, %s\n  -> %s\n", hostList(warned[f], out.Is("wide")), f.Message, f.Remedy)
	}
	return err
}

func renewal(r cluster.Renewal) string {
	if r.Kubelet && r.ControlPlane {
		return "on (kubelets rotate theirs; a daily timer renews the control plane's)"
	}
	return fmt.Sprintf("OFF on %s; paictl cluster up switches it on", strings.Join(r.Off, ", "))
}

func hostList(hosts []string, all bool) string {
	if all || len(hosts) <= 3 {
		return strings.Join(hosts, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(hosts[:2], ","), len(hosts)-2)
}
