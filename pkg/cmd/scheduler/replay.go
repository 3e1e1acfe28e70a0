package scheduler

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ReplayOptions are the options of "paictl scheduler replay".
type ReplayOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	// Config is the file with the scheduler configuration. It is "" if the steps contain the configuration.
	Config string
	// Steps is the file with the steps, or "-" for stdin.
	Steps  string
	Verify bool
}

// NewCmdReplay returns "paictl scheduler replay".
func NewCmdReplay(f *cmdutil.Factory) *cobra.Command {
	opts := &ReplayOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "replay STEPS",
		Short: "Run steps on the scheduler and print its answer to each",
		Long: `Runs a list of steps, in YAML or JSON, on a new scheduler, and prints one line per step:

  start {config, healthyNodes}     begin; a second time it is a restart, which only what was accepted
                                   survives, by its annotations. config is a path, from the folder of
                                   STEPS, or the YAML itself; healthyNodes is "*" or a list
  schedule {pod, phase, suggestedNodes, podSchedulingSpec}
                                   request a placement: bind, wait, preempt or badRequest. phase is
                                   Filtering or Preempting; the spec may be left out the next time
  addAllocatedPod {pod, podBindInfo, podLeafCellIsolation, node}
                                   accept the last bind, or adopt a pod that already runs
  deleteAllocatedPod {pod}, deleteUnallocatedPod {pod}
  setNodeBad {node}, setNodeHealthy {node}
  inspect                          the state of all groups, cells and virtual clusters

A step is a map, {op: schedule, pod: p1, ...}. A step that is refused or invalid also gets an answer,
and the next one runs; if a step is invalid, the exit code is 1.`,
		Example: `  paictl scheduler replay --config hivedscheduler.yaml steps.yaml
  paictl scheduler replay steps.json | jq -r 'select(.op == "schedule") | .result'
  generate-steps | paictl scheduler replay --verify -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Steps = args[0]
			return replayRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Config, "config", "", "scheduler configuration for steps \"start\" that don't name one")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.Flags().BoolVar(&opts.Verify, "verify", false, "recount the scheduler's bookkeeping after every step")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "json", "text")
	return cmd
}

func replayRun(ctx context.Context, opts *ReplayOptions) error {
	o := sim.ReplayOptions{ReadFile: os.ReadFile, Verify: opts.Verify}
	if opts.Config != "" {
		data, err := readConfig(opts.Config)
		if err != nil {
			return err
		}
		o.Config = &sim.Source{Name: opts.Config, Data: data}
	}
	data, err := readSteps(opts)
	if err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	w := bufio.NewWriterSize(opts.IO.Out, 64<<10)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	steps, failed, violated := 0, 0, 0
	err = sim.Replay(ctx, opts.Steps, data, o, func(l *sim.Line) error {
		steps++
		if l.Result == sim.Failed {
			failed++
		}
		if l.Violation != "" {
			violated++
		}
		if opts.Output.Is("text") {
			fmt.Fprintln(w, sentence(l))
		} else if err := enc.Encode(l); err != nil {
			return err
		}
		return w.Flush()
	})
	switch {
	case err != nil:
		return err
	case violated > 0:
		return fmt.Errorf("after %d of %d steps the scheduler's bookkeeping is inconsistent", violated, steps)
	case failed > 0:
		return fmt.Errorf("%d of %d steps are not valid", failed, steps)
	}
	return nil
}

func readSteps(opts *ReplayOptions) ([]byte, error) {
	if opts.Steps == "-" {
		return io.ReadAll(opts.IO.In)
	}
	return os.ReadFile(opts.Steps)
}

// sentence formats the result of a step for a person.
func sentence(l *sim.Line) string {
	words := []string{fmt.Sprintf("%d", l.Step), l.Op, l.Pod, l.Result}
	if l.Place != nil && l.Node != "" {
		words = append(words, fmt.Sprintf("%s %v", l.Node, l.LeafCellIsolation))
	}
	if l.Place != nil && len(l.Victims) > 0 {
		words = append(words, "victims "+strings.Join(l.Victims, ","))
	}
	for _, d := range l.Downgraded {
		words = append(words, "downgraded "+d.VC+"/"+d.Group)
	}
	for _, d := range l.Restored {
		words = append(words, "restored "+d.VC+"/"+d.Group)
	}
	if l.Reason != "" {
		words = append(words, "("+l.Reason+")")
	}
	if l.Violation != "" {
		words = append(words, "VIOLATION "+l.Violation)
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
