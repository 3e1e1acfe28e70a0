// Package bundle contains the commands "paictl bundle ...", which build, check and show the folder with the programs and images for the
// installation of clusters.
// In: flags. Out: calls of pkg/cluster/bundle, and tables.
package bundle

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdBundle returns "paictl bundle" with its subcommands.
func NewCmdBundle(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Make and check the programs and images for the installation of a cluster",
		Long: `A bundle is a folder with everything that machines need to become a cluster: containerd,
runc, kubelet, kubeadm, CNI plugins, container images and charts, each with its checksum in
` + bundle.ManifestFile + `. Machines get their files from it and need no internet access.

Build it from source (minutes the first time, then seconds) or fetch it from the upstream projects.
For machines without internet access, you add the packages of NVIDIA's driver yourself.`,
		Example: `  paictl bundle build
  paictl bundle list
  paictl bundle verify`,
	}
	cmd.AddCommand(newCmdBuild(f, nil), newCmdFetch(f, nil), newCmdVerify(f, nil), newCmdList(f, nil), newCmdAddDriver(f), newCmdRemoveDriver(f))
	return cmd
}

// folder returns the folder of the bundle: from an argument or a flag, otherwise from paictl's settings, otherwise the default folder.
func folder(f *cmdutil.Factory, flag string, args []string) (string, error) {
	given := strings.Join(args, "")
	if flag != "" && given != "" {
		return "", cmdutil.Usagef("the bundle is named twice: give DIR or --bundle")
	}
	if given = cmp.Or(flag, given); given != "" {
		return given, nil
	}
	settings, err := f.Settings()
	if err != nil {
		return "", err
	}
	return cmp.Or(settings.GetString("bundle"), bundle.DefaultDir), nil
}

// addBundleFlag adds --bundle. It is an alternative to the argument DIR, because other commands have this flag too.
func addBundleFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "bundle", "", "folder of the bundle; the same as DIR")
	_ = cmd.MarkFlagDirname("bundle")
}

// addDirFlag adds -o/--output, the folder that the bundle is written to.
func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVarP(dir, "output", "o", "", "folder of the bundle (default: $PAICTL_BUNDLE, or "+bundle.DefaultDir+")")
	_ = cmd.MarkFlagDirname("output")
}

// dirHelp is the end of the help texts of commands that accept the folder as an argument.
const dirHelp = "DIR, or $PAICTL_BUNDLE, or " + bundle.DefaultDir
