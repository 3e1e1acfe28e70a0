package config

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/existing"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// GenerateOptions are the options of "paictl config generate".
type GenerateOptions struct {
	IO *iostreams.IOStreams
	// Dial returns a client for the machines. The command closes the client.
	Dial func(acceptNew bool, timeout time.Duration) DialCloser
	// Open connects to an existing cluster.
	Open func(kube.Options) (*kube.Cluster, error)

	QuickStart string
	// Existing means that an existing cluster is described, and there is no quick-start file.
	Existing bool
	Cluster  kube.Options
	Masters  []string

	OutDir    string
	Force     bool
	Offline   bool
	DryRun    bool
	AcceptNew bool
	Timeout   time.Duration
}

// DialCloser is an ssh.Dialer whose connections Close closes.
type DialCloser interface {
	ssh.Dialer
	io.Closer
}

// NewCmdGenerate returns "paictl config generate".
func NewCmdGenerate(f *cmdutil.Factory) *cobra.Command {
	opts := &GenerateOptions{IO: f.IO, Open: kube.Open, Dial: func(acceptNew bool, timeout time.Duration) DialCloser { return client(f, acceptNew, timeout) }}
	kubeconfig := ""
	cmd := &cobra.Command{
		Use:   "generate -i quick-start.yaml -o DIR",
		Short: "Make the four files of a configuration from a quick-start file",
		Long: `Reads a quick-start file, asks the machines over SSH for their hardware, and writes the four files,
` + strings.Join(config.Files(), ", ") + `:
all of them, or none. It changes nothing on the machines.

Two lines are enough for a quick-start file:

  machines: [10.0.0.1, 10.0.0.2, 10.0.0.3]
  ssh-username: ubuntu

The first machine becomes the master, the others workers; one machine alone is both.
"paictl config example" prints a file that documents every field.

--from-kubeconfig describes an existing Kubernetes instead: its nodes become the machines. paictl
runs its services there and does not change the machines. It only needs the right to list nodes.
Nodes of the control plane become masters, which run the platform's services; if the API lists none,
as in managed clouds, paictl chooses one node, or uses those of --masters.`,
		Example: `  paictl config generate -i quick-start.yaml -o ./cluster
  paictl config generate -i quick-start.yaml -o ./cluster --dry-run
  paictl config generate -i quick-start.yaml -o ./cluster --offline
  paictl config generate --from-kubeconfig -o ./cluster
  paictl config generate --from-kubeconfig ./kubeconfig --context lab --masters node-1 -o ./cluster`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Existing = cmd.Flags().Changed("from-kubeconfig")
			if err := opts.complete(cmd, kubeconfig, args); err != nil {
				return err
			}
			return generateRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&opts.QuickStart, "input", "i", "", "the quick-start file")
	fl.StringVarP(&opts.OutDir, "output", "o", "", "folder to write; created if it is missing")
	fl.BoolVarP(&opts.Force, "force", "f", false, "replace existing files")
	fl.BoolVar(&opts.Offline, "offline", false, "connect to no machine; fill in their hardware yourself")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "print the files, with secrets masked, and write nothing")
	fl.BoolVar(&opts.AcceptNew, "accept-new-host-keys", false, "accept and remember the keys of hosts not seen before; changed keys are still refused")
	fl.DurationVar(&opts.Timeout, "timeout", 30*time.Second, "time limit for connecting to a machine, and for its answer")
	fl.StringVar(&kubeconfig, "from-kubeconfig", "", "describe the cluster of this kubeconfig; without a file, the cluster of KUBECONFIG or ~/.kube/config")
	fl.Lookup("from-kubeconfig").NoOptDefVal = usualKubeconfig
	fl.StringVar(&opts.Cluster.Context, "context", "", "with --from-kubeconfig: the context to use instead of the current one")
	fl.StringSliceVar(&opts.Masters, "masters", nil, "with --from-kubeconfig: nodes that run the platform's services, in addition to those of the control plane")
	_ = cmd.MarkFlagFilename("input", "yaml", "yml")
	_ = cmd.MarkFlagDirname("output")
	_ = cmd.MarkFlagFilename("from-kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return kube.Contexts(kube.Options{Kubeconfig: kubeconfigFile(kubeconfig, nil)}), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// usualKubeconfig is the value of --from-kubeconfig if the user gives the flag without a file.
const usualKubeconfig = "usual"

// kubeconfigFile returns the file of --from-kubeconfig. The file may also be the argument after the flag, because pflag accepts an optional
// value only after "=".
func kubeconfigFile(flag string, args []string) string {
	switch {
	case len(args) > 0:
		return args[0]
	case flag == usualKubeconfig:
		return ""
	}
	return flag
}

// complete checks which flags and arguments are given together.
func (opts *GenerateOptions) complete(cmd *cobra.Command, kubeconfig string, args []string) error {
	switch {
	case !opts.Existing && len(args) > 0:
		return cmdutil.Usagef("unknown argument %q (see %s --help)", args[0], cmd.CommandPath())
	case opts.Existing && len(args) > 0 && kubeconfig != usualKubeconfig:
		return cmdutil.Usagef("--from-kubeconfig names %s, so remove the argument %q", kubeconfig, args[0])
	case opts.OutDir == "" && !opts.DryRun, !opts.Existing && opts.QuickStart == "":
		return cmdutil.Usagef("give the quick-start file with -i and the folder to write with -o (see %s --help)", cmd.CommandPath())
	case opts.Existing && (opts.QuickStart != "" || opts.Offline || opts.AcceptNew):
		return cmdutil.Usagef("--from-kubeconfig reads no quick-start file and connects to no machine: remove -i, --offline and --accept-new-host-keys")
	case !opts.Existing && (opts.Cluster.Context != "" || len(opts.Masters) > 0):
		return cmdutil.Usagef("--context and --masters are for --from-kubeconfig; a quick-start file has the field masters")
	case opts.Timeout <= 0:
		return cmdutil.Usagef("--timeout must be more than 0")
	}
	opts.Cluster.Kubeconfig = kubeconfigFile(kubeconfig, args)
	return nil
}

func generateRun(ctx context.Context, opts *GenerateOptions) error {
	g := config.Generation{
		QuickStart: opts.QuickStart, OutDir: opts.OutDir, Force: opts.Force, Offline: opts.Offline,
		DryRun: opts.DryRun, Timeout: opts.Timeout, Progress: progress(opts.IO),
		Reference: catalogue.Reference(), Checks: []config.Check{catalogue.Check},
		Images: builtImages,
	}
	if opts.DryRun && g.OutDir == "" {
		g.OutDir = "."
	}
	out, err := generate(ctx, opts, g)
	if err != nil {
		return err
	}
	if err := out.Warnings.Write(opts.IO.Err); err != nil {
		return err
	}
	if opts.DryRun {
		return printFiles(opts.IO.Out, out)
	}
	for _, name := range config.Files() {
		fmt.Fprintf(opts.IO.Err, "wrote %s\n", out.Path(name))
	}
	fmt.Fprintf(opts.IO.Err, "%s\n%s\n", out.Summary(), out.NextSteps())
	return nil
}

// builtImages returns sections of services that refer to the images in a bundle that was built on this machine. Without these sections, the
// charts use the upstream images. It ignores a bundle that can't be opened, because commands that need the bundle report the error.
func builtImages(dir string) map[string]map[string]any {
	b, err := bundle.Open(dir)
	if err != nil || b.Manifest().Origin != bundle.OriginBuild {
		return nil
	}
	return bundle.ServiceSections(b.List(bundle.KindImage))
}

func generate(ctx context.Context, opts *GenerateOptions, g config.Generation) (*config.Generated, error) {
	switch {
	case opts.Existing:
		c, err := opts.Open(opts.Cluster)
		if err != nil {
			return nil, err
		}
		e, err := existing.Read(ctx, c)
		if err != nil {
			return nil, err
		}
		e.Masters = opts.Masters
		return config.GenerateExisting(e, g)
	case !opts.Offline:
		d := opts.Dial(opts.AcceptNew, opts.Timeout)
		defer func() { _ = d.Close() }() // all responses have arrived
		g.Dialer = d
	}
	return config.Generate(ctx, g)
}

// progress returns a function that shows on a terminal how many machines have responded, and which machines failed. It returns nil if there is
// no terminal; the error of the command lists the failures with remedies.
func progress(io *iostreams.IOStreams) func(done, total int, host string, err error) {
	if !io.IsErrTTY() {
		return nil
	}
	return func(done, total int, host string, err error) {
		if err != nil {
			fmt.Fprintf(io.Err, "\r\033[K%s: %v\n", host, err)
		}
		fmt.Fprintf(io.Err, "\r\033[Kasked %d of %d machines", done, total)
		if done == total {
			fmt.Fprint(io.Err, "\r\033[K")
		}
	}
}

// printFiles writes the generated files, with secrets masked, as one stream of YAML documents.
func printFiles(w io.Writer, g *config.Generated) error {
	files, err := g.Masked(catalogue.SecretPaths(g.Cluster)...)
	if err != nil {
		return err
	}
	for _, name := range config.Files() {
		if _, err := fmt.Fprintf(w, "---\n# %s\n%s", name, files[name]); err != nil {
			return err
		}
	}
	return nil
}
