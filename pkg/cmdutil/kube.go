package cmdutil

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/kube"
)

// AddKubeFlags adds --kubeconfig and --context, which choose the cluster for a command.
func AddKubeFlags(cmd *cobra.Command, o *kube.Options) {
	fl := cmd.Flags()
	fl.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, or ~/.kube/config)")
	fl.StringVar(&o.Context, "context", "", "context in the kubeconfig (default: its current context)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return kube.Contexts(*o), cobra.ShellCompDirectiveNoFileComp
	})
}
