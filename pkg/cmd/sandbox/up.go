package sandbox

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// UpOptions are the options of "paictl sandbox up".
type UpOptions struct {
	IO       *iostreams.IOStreams
	Settings func() (*cmdutil.Settings, error)
	Output   cmdutil.Output
	Sandbox  sandbox.Options
	Light    bool
	APIOnly  bool
	Layout   string
}

// NewCmdUp returns "paictl sandbox up". Tests pass runF, which replaces the function that runs the command.
func NewCmdUp(f *cmdutil.Factory, runF func(context.Context, *UpOptions) error) *cobra.Command {
	opts := &UpOptions{IO: f.IO, Settings: f.Settings}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make the hosts, or those that are missing",
		Long: `Makes hosts with their own address, sshd and systemd on this machine, and a quick-start file for
them. The first time it builds their base image from this machine's own Debian or Ubuntu mirror, or from
--mirror with another --release, which takes about a minute; then three hosts take two seconds. If it is interrupted, run it again to continue.

With --api-only it starts etcd, the API server, controller manager and scheduler of a bundle as your
own processes on loopback, without root, and simulates the nodes. No containers run there.`,
		Example: `  paictl sandbox up --hosts 3
  paictl sandbox up --hosts 50 --light --dir /tmp/many --name many
  paictl sandbox up --release noble --mirror http://archive.ubuntu.com/ubuntu --dir /tmp/noble --name noble
  paictl sandbox up --api-only --bundle ./bundle-out --layout ./cluster/layout.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return upRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	addDirFlag(cmd, f, &opts.Sandbox.Dir)
	fl.IntVar(&opts.Sandbox.Hosts, "hosts", 3, "number of hosts")
	fl.StringVar(&opts.Sandbox.Name, "name", "", "first part of the hosts' names, at most 8 characters (default \"pai\")")
	fl.BoolVar(&opts.Light, "light", false, "hosts with sshd only: fast to make in large numbers, but they can't run a cluster")
	fl.StringVar(&opts.Sandbox.Subnet, "subnet", "", "IPv4 network of the hosts, 24 bits (default the first free from 10.77.0.0/24 on)")
	fl.StringVar(&opts.Sandbox.Release, "release", "", "codename of the hosts' release of Debian or Ubuntu, such as trixie or noble (default this machine's)")
	fl.StringVar(&opts.Sandbox.Mirror, "mirror", "", "address of a mirror that has the release (default this machine's)")
	fl.StringVar(&opts.Sandbox.Keyring, "keyring", "", "file with the keys that sign another release (default that of debian-archive-keyring or ubuntu-keyring)")
	fl.StringVar(&opts.Sandbox.CacheDir, "cache", sandbox.DefaultCache, "folder where base images are kept between sandboxes")
	fl.StringVar(&opts.Sandbox.Bundle, "bundle", "", "folder of the bundle, written into quick-start.yaml; --api-only runs its programs (default $PAICTL_BUNDLE)")
	_ = cmd.MarkFlagDirname("bundle")
	fl.BoolVar(&opts.Sandbox.InstallPackages, "install-packages", false, "install Debian packages that are missing on this machine")
	fl.BoolVar(&opts.APIOnly, "api-only", false, "no hosts: a Kubernetes API on loopback with simulated nodes; needs no root")
	fl.StringVar(&opts.Layout, "layout", "", "layout.yaml whose machines --api-only simulates (default three CPU nodes)")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func (o *UpOptions) check(cmd *cobra.Command) error {
	if o.APIOnly {
		for _, name := range []string{"light", "subnet", "install-packages", "cache", "release", "mirror", "keyring"} {
			if cmd.Flags().Changed(name) {
				return cmdutil.Usagef("--%s is for hosts, but --api-only doesn't make hosts", name)
			}
		}
		if o.Layout != "" && cmd.Flags().Changed("hosts") {
			return cmdutil.Usagef("--layout and --hosts both set the number of nodes; give one of them")
		}
		return nil
	}
	if o.Layout != "" {
		return cmdutil.Usagef("--layout needs --api-only: hosts are made from --hosts")
	}
	if o.Light {
		o.Sandbox.Kind = sandbox.Light
	}
	return nil
}

func upRun(ctx context.Context, opts *UpOptions) error {
	if opts.Sandbox.Bundle == "" {
		settings, err := opts.Settings()
		if err != nil {
			return err
		}
		opts.Sandbox.Bundle = settings.GetString("bundle")
	}
	opts.Sandbox.Progress = func(line string) { fmt.Fprintln(opts.IO.Err, line) }
	s, err := makeSandbox(ctx, opts)
	if err != nil {
		return err
	}
	if err := printList(s, opts.IO.Out, &opts.Output); err != nil {
		return err
	}
	if s.APIOnly() {
		fmt.Fprintf(opts.IO.Err, "\nThe API is real, its nodes are simulated: pods are scheduled there, but no container runs.\n"+
			"For real hosts, run on a Linux machine as root: paictl sandbox up --hosts 3\n"+
			"Try:  kubectl --kubeconfig %s get nodes\n", s.Kubeconfig())
		return nil
	}
	fmt.Fprintf(opts.IO.Err, "\nNext:  paictl config generate -i %s -o ./cluster\n", hint.Quote(s.QuickStart()))
	return nil
}

func makeSandbox(ctx context.Context, opts *UpOptions) (*sandbox.Sandbox, error) {
	if !opts.APIOnly {
		return sandbox.Up(ctx, opts.Sandbox)
	}
	var nodes []sandbox.Node
	if opts.Layout != "" {
		var err error
		if nodes, err = simulatedNodes(opts.Layout); err != nil {
			return nil, err
		}
	}
	return sandbox.UpAPI(ctx, opts.Sandbox, nodes)
}
