// Package version contains the command "paictl version".
// In: nothing, or files and the checksums of a release. Out: the version of this paictl, the result of a comparison with the released files, or
// the newest release.
package version

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

// Options are the options of "paictl version".
type Options struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	// Program returns the path of the running program.
	Program func() (string, error)

	Verify    bool
	Check     bool
	Files     []string
	Checksums string
	Key       string
	Address   string
}

// NewCmdVersion returns "paictl version". Tests pass runF, which replaces the function that runs the command.
func NewCmdVersion(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Program: os.Executable}
	cmd := &cobra.Command{
		Use:   "version [--verify [FILE...] | --check]",
		Short: "Show the version of paictl and of the Kubernetes it installs, or verify a release",
		Long: `Shows the version of paictl, and of the Kubernetes that it installs.

--verify compares this program and paictl-history beside it, or the files that you name, with the checksums of a release: ` + release.ListFile + `,
which ` + release.SignatureFile + ` signs. It needs no network. It reads both from the folder of the program or of the
first file, or from share/paictl of the installation; --checksums names another place. A changed paictl can print
anything, so verify a download with a paictl that you have, with minisign, or with install.sh before you run it.

--check gets the checksums of the newest release, checks their signature, and reports whether the release is newer
than this program. No other command looks for releases.`,
		Example: `  paictl version
  paictl version -o json
  paictl version --verify
  paictl version --verify paictl_v1.2.3_linux_amd64.tar.gz
  paictl version --check`,
		Args: func(cmd *cobra.Command, args []string) error {
			if opts.Verify {
				return nil
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Files = args
			if err := opts.complete(f, cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return versionRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	fl := cmd.Flags()
	fl.BoolVar(&opts.Verify, "verify", false, "compare this program, or files, with the signed checksums of a release")
	fl.BoolVar(&opts.Check, "check", false, "report whether a newer release exists")
	fl.StringVar(&opts.Checksums, "checksums", "", "with --verify: file of the checksums; its signature is beside it (default: "+release.ListFile+" beside the program or file)")
	fl.StringVar(&opts.Key, "key", "", "public key of releases, or a file with it (default: the key that this paictl was built with)")
	fl.StringVar(&opts.Address, "address", "", "with --check: URL below which releases are published (default: $PAICTL_RELEASE_ADDRESS, or "+release.Address+")")
	return cmd
}

// complete rejects flags that have no effect, and takes the address of releases from the settings.
func (o *Options) complete(f *cmdutil.Factory, cmd *cobra.Command) error {
	if o.Verify && o.Check {
		return cmdutil.Usagef("give --verify or --check")
	}
	fl := cmd.Flags()
	switch {
	case fl.Changed("checksums") && !o.Verify:
		return cmdutil.Usagef("--checksums is for --verify")
	case fl.Changed("address") && !o.Check:
		return cmdutil.Usagef("--address is for --check")
	case fl.Changed("key") && !o.Verify && !o.Check:
		return cmdutil.Usagef("--key is for --verify and --check")
	}
	if !o.Check || o.Address != "" {
		return nil
	}
	settings, err := f.Settings()
	if err != nil {
		return err
	}
	o.Address = cmp.Or(settings.GetString("release-address"), release.Address)
	return nil
}

func versionRun(ctx context.Context, opts *Options) error {
	switch {
	case opts.Verify:
		return verifyRun(ctx, opts)
	case opts.Check:
		return checkRun(ctx, opts)
	}
	b := version.Get()
	if opts.Output.Is("text") {
		_, err := fmt.Fprintln(opts.IO.Out, Line())
		return err
	}
	return opts.Output.Write(opts.IO.Out, b, cmdutil.Table{})
}

// Line returns the version as one line of text. "paictl --version" prints the same line.
func Line() string {
	b := version.Get()
	return fmt.Sprintf("paictl %s (%s, %s), Kubernetes %s", b.Version, b.Platform, b.Go, b.Kubernetes)
}
