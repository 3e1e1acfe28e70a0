// Package version is the command "paictl version".
// In: nothing. Out: which paictl this is, for a person or a program.
package version

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

// Options of "paictl version".
type Options struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
}

// NewCmdVersion returns "paictl version".
func NewCmdVersion(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of paictl and of the Kubernetes it installs",
		Args:    cobra.NoArgs,
		Example: "  paictl version\n  paictl version -o json",
		RunE: func(_ *cobra.Command, _ []string) error {
			return versionRun(opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func versionRun(opts *Options) error {
	b := version.Get()
	if opts.Output.Is("text") {
		_, err := fmt.Fprintln(opts.IO.Out, Line())
		return err
	}
	return opts.Output.Write(opts.IO.Out, b, cmdutil.Table{})
}

// Line is the version as one line of text, also for "paictl --version".
func Line() string {
	b := version.Get()
	return fmt.Sprintf("paictl %s (%s, %s), Kubernetes %s", b.Version, b.Platform, b.Go, b.Kubernetes)
}
