package config

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/ssh"
)

// GenerateOptions are those of "paictl config generate".
type GenerateOptions struct {
	IO *iostreams.IOStreams
	// Dial makes the client that reaches the machines; the command closes it.
	Dial func(acceptNew bool, timeout time.Duration) DialCloser

	QuickStart string
	OutDir     string
	Force      bool
	Offline    bool
	DryRun     bool
	AcceptNew  bool
	Timeout    time.Duration
}

// DialCloser is an ssh.Dialer whose connections end with it.
type DialCloser interface {
	ssh.Dialer
	io.Closer
}

// NewCmdGenerate returns "paictl config generate". runF replaces the run in tests.
func NewCmdGenerate(f *cmdutil.Factory, runF func(context.Context, *GenerateOptions) error) *cobra.Command {
	opts := &GenerateOptions{IO: f.IO, Dial: func(acceptNew bool, timeout time.Duration) DialCloser { return client(f, acceptNew, timeout) }}
	cmd := &cobra.Command{
		Use:   "generate -i quick-start.yaml -o DIR",
		Short: "Make the four files of a configuration from a quick-start file",
		Long: `Reads a quick-start file, asks the machines over SSH for their hardware, and writes layout.yaml,
kubernetes-configuration.yaml, k8s-role-definition.yaml and services-configuration.yaml: all of
them, or none. Nothing is changed on the machines.

Two lines are enough for a quick-start file:

  machines: [10.0.0.1, 10.0.0.2, 10.0.0.3]
  ssh-username: ubuntu

The first machine becomes the master, the others workers; one machine alone is both.
"paictl config example" prints a file that documents every field.`,
		Example: `  paictl config generate -i quick-start.yaml -o ./cluster
  paictl config generate -i quick-start.yaml -o ./cluster --dry-run
  paictl config generate -i quick-start.yaml -o ./cluster --offline`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.QuickStart == "" || opts.OutDir == "" && !opts.DryRun {
				return cmdutil.Usagef("give the quick-start file with -i and the folder to write with -o (see %s --help)", cmd.CommandPath())
			}
			if opts.Timeout <= 0 {
				return cmdutil.Usagef("--timeout must be more than 0")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return generateRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&opts.QuickStart, "input", "i", "", "the quick-start file")
	fl.StringVarP(&opts.OutDir, "output", "o", "", "folder to write; made where it is not there")
	fl.BoolVarP(&opts.Force, "force", "f", false, "replace files that are there")
	fl.BoolVar(&opts.Offline, "offline", false, "ask no machine; what they would have said is left to fill in")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "print the files, with secrets masked, and write nothing")
	fl.BoolVar(&opts.AcceptNew, "accept-new-host-keys", false, "accept and remember the keys of hosts not seen before; changed keys are still refused")
	fl.DurationVar(&opts.Timeout, "timeout", 30*time.Second, "how long connecting to a machine may take, and how long its answer")
	_ = cmd.MarkFlagFilename("input", "yaml", "yml")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

func generateRun(ctx context.Context, opts *GenerateOptions) error {
	g := config.Generation{
		QuickStart: opts.QuickStart, OutDir: opts.OutDir, Force: opts.Force, Offline: opts.Offline,
		DryRun: opts.DryRun, Timeout: opts.Timeout, Progress: progress(opts.IO),
	}
	if opts.DryRun && g.OutDir == "" {
		g.OutDir = "."
	}
	if !opts.Offline {
		d := opts.Dial(opts.AcceptNew, opts.Timeout)
		defer func() { _ = d.Close() }() // all answers are in
		g.Dialer = d
	}
	out, err := config.Generate(ctx, g)
	if err != nil {
		return err
	}
	if err := out.Warnings.Write(opts.IO.Err); err != nil {
		return err
	}
	if opts.DryRun {
		return printFiles(opts.IO.Out, out)
	}
	for _, name := range config.Files() {
		fmt.Fprintf(opts.IO.Err, "wrote %s\n", out.Path(name))
	}
	fmt.Fprintf(opts.IO.Err, "%s\n%s\n", out.Summary(), out.NextSteps())
	return nil
}

// progress tells of machines as they answer: one line that is rewritten on a terminal,
// and only failures elsewhere (the error lists them again with remedies).
func progress(io *iostreams.IOStreams) func(done, total int, host string, err error) {
	if !io.IsErrTTY() {
		return nil
	}
	return func(done, total int, host string, err error) {
		if err != nil {
			fmt.Fprintf(io.Err, "\r\033[K%s: %v\n", host, err)
		}
		fmt.Fprintf(io.Err, "\r\033[Kasked %d of %d machines", done, total)
		if done == total {
			fmt.Fprint(io.Err, "\r\033[K")
		}
	}
}

// printFiles writes the files as one stream of YAML documents.
func printFiles(w io.Writer, g *config.Generated) error {
	files, err := g.Masked()
	if err != nil {
		return err
	}
	for _, name := range config.Files() {
		if _, err := fmt.Fprintf(w, "---\n# %s\n%s", name, files[name]); err != nil {
			return err
		}
	}
	return nil
}
