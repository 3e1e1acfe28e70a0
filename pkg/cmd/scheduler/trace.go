package scheduler

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// TraceOptions are the options of "paictl scheduler trace".
type TraceOptions struct {
	IO   *iostreams.IOStreams
	GPUs int
	Seed uint64
	Dir  string
}

// NewCmdTrace returns "paictl scheduler trace".
func NewCmdTrace(f *cmdutil.Factory) *cobra.Command {
	opts := &TraceOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Generate a trace of jobs, and a cluster for them",
		Long: `Writes trace-GPUS.csv and hived-GPUS.yaml: jobs whose work fills 90 % of a generated cluster's GPUs, and
that cluster as a scheduler configuration. The same seed gives the same files.

If you write a trace yourself, begin it with the same first line: ` + trace.Header() + `.`,
		Example: `  paictl scheduler trace --gpus 512 --seed 7 -d ./trace`,
		Args:    cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			return traceRun(opts)
		},
	}
	cmd.Flags().IntVar(&opts.GPUs, "gpus", 512, "size of the cluster: "+sizes())
	cmd.Flags().Uint64Var(&opts.Seed, "seed", 7, "a different seed makes different jobs")
	cmd.Flags().StringVarP(&opts.Dir, "dir", "d", ".", "folder to write to")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func traceRun(opts *TraceOptions) error {
	t, err := trace.Generate(opts.GPUs, opts.Seed)
	if err != nil {
		return cmdutil.Usagef("%w", err)
	}
	var jobs bytes.Buffer
	if err := trace.WriteCSV(&jobs, t.Jobs); err != nil {
		return err
	}
	if err := os.MkdirAll(opts.Dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{fmt.Sprintf("trace-%d.csv", opts.GPUs), jobs.Bytes()}, {fmt.Sprintf("hived-%d.yaml", opts.GPUs), t.YAML}} {
		path := filepath.Join(opts.Dir, f.name)
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(opts.IO.Err, "wrote", path)
	}
	return nil
}

// sizes returns the numbers of GPUs that a trace can be generated for, as text.
func sizes() string {
	var out []string
	for _, n := range trace.Sizes() {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out[:len(out)-1], ", ") + " or " + out[len(out)-1]
}
