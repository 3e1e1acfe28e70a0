// Package docs contains the command "paictl docs".
// In: the complete tree of commands. Out: the reference of all commands as Markdown, with one page per group of commands, and as man pages, with
// one page per command.
package docs

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Options are the options of the commands of "paictl docs".
type Options struct {
	IO  *iostreams.IOStreams
	Dir string
}

// NewCmdDocs returns "paictl docs". Packages of paictl contain its output, and users don't need the command.
func NewCmdDocs(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "docs",
		Short:  "Write the reference of all commands",
		Long:   "Writes the reference of all commands, for those who package paictl.",
		Hidden: true,
	}
	cmd.AddCommand(NewCmdMan(f), NewCmdMarkdown(f))
	return cmd
}

// NewCmdMan returns "paictl docs man".
func NewCmdMan(f *cmdutil.Factory) *cobra.Command {
	return newCmd(f, &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write a man page for each command",
		Long: `Writes a man page of section 1 for each command: paictl.1, paictl-job.1, paictl-job-submit.1.
Their date is the date of the commit that paictl was built from, or SOURCE_DATE_EPOCH if it is set.`,
		Example: "  paictl docs man --dir /usr/share/man/man1",
	}, func(root *cobra.Command, opts *Options) (int, error) { return writeMan(root, opts.Dir, f.Getenv) })
}

// NewCmdMarkdown returns "paictl docs markdown".
func NewCmdMarkdown(f *cmdutil.Factory) *cobra.Command {
	return newCmd(f, &cobra.Command{
		Use:     "markdown --dir DIR",
		Short:   "Write a Markdown page for each group of commands",
		Long:    "Writes a Markdown page for each group of commands, job.md for \"paictl job\", and README.md, which links them.",
		Example: "  paictl docs markdown --dir ./commands",
	}, func(root *cobra.Command, opts *Options) (int, error) { return writePages(opts.Dir, Pages(root)) })
}

func newCmd(f *cmdutil.Factory, cmd *cobra.Command, write func(*cobra.Command, *Options) (int, error)) *cobra.Command {
	opts := &Options{IO: f.IO}
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if opts.Dir == "" {
			return cmdutil.Usagef("%s: --dir is missing: name the folder to write into", cmd.CommandPath())
		}
		if err := os.MkdirAll(opts.Dir, 0o755); err != nil {
			return fmt.Errorf("make the folder of the documents: %w", err)
		}
		n, err := write(cmd.Root(), opts)
		if err != nil {
			return err
		}
		fmt.Fprintf(opts.IO.Err, "wrote %d files to %s\n", n, opts.Dir)
		return nil
	}
	cmd.Flags().StringVar(&opts.Dir, "dir", "", "folder to write into; created if it is missing")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}
