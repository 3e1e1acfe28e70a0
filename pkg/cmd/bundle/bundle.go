// Package bundle is the command "paictl bundle": make, check and show the folder of programs
// and images that clusters are installed from.
// In: flags. Out: calls of pkg/bundle, and tables.
package bundle

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdBundle returns "paictl bundle" with its verbs.
func NewCmdBundle(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Make and check the programs and images that a cluster is installed from",
		Long: `A bundle is a folder with everything that machines need to become a cluster: containerd,
runc, kubelet, kubeadm, CNI plugins and container images, each with its checksum in
` + bundle.ManifestFile + `. Machines get their files from it and need no internet.

It is built from source (minutes, then seconds) or fetched from the upstream projects.`,
		Example: `  paictl bundle build
  paictl bundle list
  paictl bundle verify`,
	}
	cmd.AddCommand(newCmdBuild(f, nil), newCmdFetch(f, nil), newCmdVerify(f, nil), newCmdList(f, nil))
	return cmd
}

// dirOf is the folder that an optional argument names.
func dirOf(args []string) string {
	if len(args) == 0 {
		return bundle.DefaultDir
	}
	return args[0]
}
