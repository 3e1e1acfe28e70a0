// Package bundle is the command "paictl bundle": build, check and show the folder of programs and images that clusters are installed from.
// In: flags. Out: calls of pkg/cluster/bundle, and tables.
package bundle

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdBundle returns "paictl bundle" with its verbs.
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

// folder returns the bundle's folder: from an argument or a flag, from paictl's settings, or the default.
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

// addBundleFlag adds --bundle, which other commands have, too.
func addBundleFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "bundle", "", "folder of the bundle; the same as DIR")
	_ = cmd.MarkFlagDirname("bundle")
}

// addDirFlag adds -o/--output, the folder to write to.
func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVarP(dir, "output", "o", "", "folder of the bundle (default: $PAICTL_BUNDLE, or "+bundle.DefaultDir+")")
	_ = cmd.MarkFlagDirname("output")
}

// dirHelp is the end of the help of commands that take the folder as an argument.
const dirHelp = "DIR, or $PAICTL_BUNDLE, or " + bundle.DefaultDir
