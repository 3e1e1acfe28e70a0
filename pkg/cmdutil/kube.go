package cmdutil

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/kube"
)

// AddKubeFlags adds --kubeconfig and --context, which choose the cluster of a command.
func AddKubeFlags(cmd *cobra.Command, o *kube.Options) {
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: KUBECONFIG, else ~/.kube/config)")
	cmd.Flags().StringVar(&o.Context, "context", "", "context of the kubeconfig (default: its current one)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return kube.Contexts(*o), cobra.ShellCompDirectiveNoFileComp
	})
}
