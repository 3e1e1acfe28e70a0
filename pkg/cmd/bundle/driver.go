package bundle

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/bundle/driver"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// addDriverOptions are the options of "paictl bundle add-driver".
type addDriverOptions struct {
	driver.Addition

	IO     *iostreams.IOStreams
	Output cmdutil.Output
}

func newCmdAddDriver(f *cmdutil.Factory) *cobra.Command {
	opts := &addDriverOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "add-driver DIR|FILE.deb...",
		Short: "Add packages of NVIDIA's driver to the bundle, for machines without internet access",
		Long: `Copies .deb files into the bundle: NVIDIA's driver, from the distribution's repository or from NVIDIA's,
and its dependencies that the machines don't have, such as dkms, a compiler and the headers of their
kernels. Folders are searched. With gpu-driver: {policy: install, source: bundle} in
kubernetes-configuration.yaml "cluster up" installs the driver from these packages.

All files of one command are for one distribution. --system names it; without --system, it is found from the
packages' versions (~deb12u1, 0ubuntu0.22.04.1). Run the command again for another distribution.

To fill a folder, run this as root on a machine of that distribution with internet access:
  apt-get clean
  apt-get install --download-only nvidia-driver-cuda nvidia-kernel-open-dkms dkms linux-headers-$(uname -r)
  cp /var/cache/apt/archives/*.deb FOLDER`,
		Example: `  paictl bundle add-driver ./debs --system debian12
  paictl bundle add-driver *.deb --bundle /srv/bundle --dry-run`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Paths = args
			var err error
			if opts.Bundle, err = folder(f, opts.Bundle, nil); err != nil {
				return err
			}
			return addDriverRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	addDriverFlags(cmd, &opts.Bundle, &opts.System, &opts.DryRun)
	return cmd
}

func addDriverRun(ctx context.Context, opts *addDriverOptions) error {
	r, err := driver.Add(ctx, opts.Addition)
	if err != nil {
		return err
	}
	return tellDriver(opts.IO, &opts.Output, r)
}

// removeDriverOptions are the options of "paictl bundle remove-driver".
type removeDriverOptions struct {
	driver.Removal

	IO     *iostreams.IOStreams
	Output cmdutil.Output
	All    bool
}

func newCmdRemoveDriver(f *cmdutil.Factory) *cobra.Command {
	opts := &removeDriverOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "remove-driver RELEASE|PACKAGE|PACKAGE=VERSION...",
		Short: "Remove packages of NVIDIA's driver from the bundle",
		Long: `Removes packages that add-driver added to the bundle: all packages of a driver release, single packages,
or all packages of a distribution. Machines keep their installed packages.`,
		Example: `  paictl bundle remove-driver 570.133.20
  paictl bundle remove-driver linux-headers-6.1.0-37-amd64 --system debian12
  paictl bundle remove-driver --all --system ubuntu22.04`,
		RunE: func(_ *cobra.Command, args []string) error {
			if opts.All == (len(args) > 0) {
				return cmdutil.Usagef("name releases or packages, or give --all")
			}
			opts.Names = args
			var err error
			if opts.Bundle, err = folder(f, opts.Bundle, nil); err != nil {
				return err
			}
			return removeDriverRun(opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	addDriverFlags(cmd, &opts.Bundle, &opts.System, &opts.DryRun)
	cmd.Flags().BoolVar(&opts.All, "all", false, "all packages; with --system, all of that distribution")
	return cmd
}

func removeDriverRun(opts *removeDriverOptions) error {
	r, err := driver.Remove(opts.Removal)
	if err != nil {
		return err
	}
	return tellDriver(opts.IO, &opts.Output, r)
}

func addDriverFlags(cmd *cobra.Command, dir, system *string, dryRun *bool) {
	cmd.Flags().StringVar(dir, "bundle", "", "folder of the bundle (default: $PAICTL_BUNDLE, or dist/bundle)")
	_ = cmd.MarkFlagDirname("bundle")
	cmd.Flags().StringVar(system, "system", "", "distribution of the machines: "+strings.Join(gpudriver.Systems(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("system", cobra.FixedCompletions(gpudriver.Systems(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "show what would be done, and do nothing")
}

// tellDriver prints the packages on stdout, and messages about the drivers on stderr.
func tellDriver(io *iostreams.IOStreams, out *cmdutil.Output, r *driver.Report) error {
	if err := out.Write(io.Out, r, driverTable(r)); err != nil {
		return err
	}
	good, bad := r.Lines()
	for _, line := range good {
		io.Say("%s", line)
	}
	for _, line := range bad {
		io.Say("warning: %s", line)
	}
	switch n := r.Pending(); {
	case n == 0:
		io.Say("bundle %s: nothing to do", r.Bundle)
	case r.DryRun:
		io.Say("bundle %s: %s would change", r.Bundle, plural.Of(n, "package"))
	default:
		io.Say("bundle %s: %s changed", r.Bundle, plural.Of(n, "package"))
	}
	return nil
}

func driverTable(r *driver.Report) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"ACTION", "PACKAGE", "VERSION", "SYSTEM", "MB"}}
	for _, c := range r.Changes {
		t.Rows = append(t.Rows, []string{c.Action, c.Name, c.Version, c.System, fmt.Sprintf("%.1f", float64(c.Size)/1e6)})
	}
	return t
}
