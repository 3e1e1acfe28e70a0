package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
)

// KubeconfigOptions are the options of "paictl cluster kubeconfig".
type KubeconfigOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	File    string
	Use     bool
	Print   bool
}

// NewCmdKubeconfig returns "paictl cluster kubeconfig".
func NewCmdKubeconfig(f *cmdutil.Factory) *cobra.Command {
	opts := &KubeconfigOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Put the cluster into your kubeconfig",
		Long: `Fetches the administrator's credentials from a healthy machine of the control plane and merges them
into ~/.kube/config (or the first file of KUBECONFIG, or --file) under the cluster's name: its cluster,
user and context are replaced as a whole, all other entries stay. Your current context changes only
with --use. The file is replaced in one step, with mode 0600. With api-vip the address is the virtual
one; while the API doesn't answer at it, a master's, with a warning.`,
		Example: `  paictl cluster kubeconfig -p ./cluster
  paictl cluster kubeconfig -p ./cluster --use
  paictl cluster kubeconfig -p ./cluster --file ./admin.kubeconfig
  paictl cluster kubeconfig -p ./cluster --print | kubectl --kubeconfig /dev/stdin get nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Print && (opts.Use || opts.File != "") {
				return cmdutil.Usagef("--print writes no file: remove --use and --file")
			}
			return kubeconfigRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	cmd.Flags().StringVar(&opts.File, "file", "", "merge into this file instead")
	cmd.Flags().BoolVar(&opts.Use, "use", false, "make it the current context")
	cmd.Flags().BoolVar(&opts.Print, "print", false, "print it to stdout instead; it contains a private key")
	cmd.Flags().Bool("merge", true, "merge with the content of the file; this is always done")
	_ = cmd.Flags().MarkHidden("merge")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func kubeconfigRun(ctx context.Context, opts *KubeconfigOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	conf, err := cluster.Kubeconfig(ctx, s.Spec, s.Options)
	if err != nil {
		return err
	}
	if opts.Print {
		b, err := clientcmd.Write(*conf)
		if err != nil {
			return err
		}
		_, err = opts.Factory.IO.Out.Write(b)
		return err
	}
	res, err := cluster.MergeKubeconfig(opts.file(), conf, opts.Use)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, res, cmdutil.Table{})
	}
	tellMerged(opts, res)
	return nil
}

// file returns the path of the kubeconfig that kubectl would also write to.
func (opts *KubeconfigOptions) file() string {
	if opts.File != "" {
		return opts.File
	}
	for _, p := range filepath.SplitList(opts.Factory.Getenv("KUBECONFIG")) {
		if p != "" {
			return p
		}
	}
	return filepath.Join(opts.Factory.Getenv("HOME"), ".kube", "config")
}

func tellMerged(opts *KubeconfigOptions, res cluster.MergeResult) {
	verb := "added to"
	if res.Replaced {
		verb = "updated in"
	}
	w := opts.Factory.IO.Err
	fmt.Fprintf(w, "context %s %s %s\n", res.Context, verb, res.File)
	kubectl := "kubectl"
	if opts.File != "" {
		kubectl += " --kubeconfig " + hint.Quote(opts.File)
	}
	if res.Current == res.Context {
		fmt.Fprintf(w, "it is the current context: %s get nodes\n", kubectl)
		return
	}
	fmt.Fprintf(w, "use it with: %s --context %s get nodes\n", kubectl, hint.Quote(res.Context))
	if res.Current != "" {
		fmt.Fprintf(w, "the current context is still %s; switch with: %s config use-context %s\n", res.Current, kubectl, hint.Quote(res.Context))
	}
}
