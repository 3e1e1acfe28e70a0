package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// FaultGPUOptions are the options of "paictl sandbox fault gpu".
type FaultGPUOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	Dir    string
	Node   string
	Index  int32
	Change func(*gpu.Fault)
}

// faulty is the output of "fault gpu -o json".
type faulty struct {
	Node  string `json:"node"`
	Index int32  `json:"index"`
	// Fault is nil if the GPU is healthy.
	*gpu.Fault
}

// mostXID is the highest accepted XID. It is far above the numbers that NVIDIA uses.
const mostXID = 1000

// fault is one kind of fault that a user can request with a word.
type fault struct {
	name, value string // value as written in the help, with its sign
	what        string
	// examples holds values and their meanings. Shell completion offers them.
	examples [][2]string
	change   func(f *gpu.Fault, xid int)
}

func faults() []fault {
	return []fault{
		{"xid", "=N", fmt.Sprintf("the driver reports the error with NVIDIA's number N, 1 to %d", mostXID), [][2]string{
			{"=31", "a program accesses invalid memory"}, {"=48", "an uncorrectable memory error"}, {"=74", "an error of NVLink"},
			{"=79", "the GPU has fallen off the bus"}, {"=95", "a memory error that affects all programs"},
		}, func(f *gpu.Fault, xid int) { f.XID = xid }},
		{"ecc", "", "one more uncorrectable memory error", nil, func(f *gpu.Fault, _ int) { f.ECC++ }},
		{"lost", "", "it no longer answers", nil, func(f *gpu.Fault, _ int) { f.Lost = true }},
		{"hot", "", "it is too hot and slows down", nil, func(f *gpu.Fault, _ int) { f.Hot = true }},
		{"clear", "", "remove all its faults", nil, func(f *gpu.Fault, _ int) { *f = gpu.Fault{} }},
	}
}

// NewCmdFault returns "paictl sandbox fault".
func NewCmdFault(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fault",
		Short:   "Simulate faults of a host",
		Example: "  paictl sandbox fault gpu pai-2 3 xid=79",
	}
	cmd.AddCommand(NewCmdFaultGPU(f, nil))
	return cmd
}

// NewCmdFaultGPU returns "paictl sandbox fault gpu". Tests pass runF, which replaces the function that runs the command.
func NewCmdFaultGPU(f *cmdutil.Factory, runF func(context.Context, *FaultGPUOptions) error) *cobra.Command {
	opts := &FaultGPUOptions{IO: f.IO}
	var words [][2]string
	for _, f := range faults() {
		words = append(words, [2]string{f.name + f.value, f.what})
	}
	cmd := &cobra.Command{
		Use:   "gpu NODE INDEX FAULT",
		Short: "Simulate a fault of a GPU, or clear it",
		Long: `Records a fault of a simulated GPU of a host. The agent on the host reads it and reports it like the
fault of a real GPU. A host that is off has the fault when it starts. FAULT is one of:

` + cmdutil.Explained(words) + `

Faults of a GPU add up until "clear"; the last xid replaces earlier ones.`,
		Example: `  paictl sandbox fault gpu pai-2 3 xid=79
  paictl sandbox fault gpu pai-2 3 lost
  paictl sandbox fault gpu pai-2 3 clear`,
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: completeFault(&opts.Dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			index, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil {
				return noIndex(args[1])
			}
			opts.Node, opts.Index = args[0], int32(index)
			if opts.Change, err = parseFault(args[2]); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return faultGPURun(opts, time.Now())
		},
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			// The flag parser mistakes a negative number for a flag.
			if word := "-" + unknown.GetSpecifiedShortnames(); isNumber(word) {
				return noIndex(word)
			}
		}
		return c.Parent().FlagErrorFunc()(c, err)
	})
	addDirFlag(cmd, f, &opts.Dir)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func isNumber(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

func noIndex(word string) error {
	return usage("write its number, as nvidia-smi counts: 0 is the first", "%q is not the index of a GPU", word)
}

func faultGPURun(opts *FaultGPUOptions, now time.Time) error {
	s, err := sandbox.Load(opts.Dir, nil)
	if err != nil {
		return err
	}
	f, err := s.FaultGPU(opts.Node, opts.Index, now, opts.Change)
	if err != nil {
		return err
	}
	out := faulty{Node: opts.Node, Index: opts.Index}
	if f != (gpu.Fault{}) {
		out.Fault = &f
	}
	if opts.Output.Is("text") {
		return writeFault(opts.IO.Out, out)
	}
	return opts.Output.Write(opts.IO.Out, out, cmdutil.Table{})
}

func writeFault(w io.Writer, of faulty) error {
	if of.Fault == nil {
		_, err := fmt.Fprintf(w, "GPU %d of %s has no faults\n", of.Index, of.Node)
		return err
	}
	var wrong []string
	if of.XID != 0 {
		wrong = append(wrong, fmt.Sprintf("XID %d", of.XID))
	}
	if of.ECC != 0 {
		wrong = append(wrong, plural.Of(of.ECC, "uncorrected memory error"))
	}
	if of.Lost {
		wrong = append(wrong, "lost")
	}
	if of.Hot {
		wrong = append(wrong, "hot")
	}
	_, err := fmt.Fprintf(w, "GPU %d of %s: %s\n", of.Index, of.Node, strings.Join(wrong, ", "))
	return err
}

// parseFault parses a word of the command line, and returns a function that changes the faults of a GPU accordingly.
func parseFault(word string) (func(*gpu.Fault), error) {
	name, value, valued := strings.Cut(word, "=")
	var names, all []string
	values := map[string]string{}
	for _, f := range faults() {
		names, all, values[f.name] = append(names, f.name), append(all, f.name+f.value), f.value
		if f.name != name || valued && f.value == "" {
			continue
		}
		xid := 0
		if f.value != "" {
			var err error
			if xid, err = strconv.Atoi(value); err != nil || xid < 1 || xid > mostXID {
				return nil, usage(fmt.Sprintf("write xid=N with a number from 1 to %d, such as xid=79", mostXID), "%q is not an XID", word)
			}
		}
		return func(g *gpu.Fault) { f.change(g, xid) }, nil
	}
	remedy := "there are: " + strings.Join(all, ", ")
	if near := strictyaml.Nearest(name, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near+values[near])
	}
	return nil, usage(remedy, "there is no fault %q", word)
}

// usage returns a UsageError with a remedy.
func usage(remedy, format string, args ...any) error {
	return &cmdutil.UsageError{Err: hint.Errorf(remedy, format, args...)}
}

// completeFault completes the name of the host, and the words for faults. It doesn't complete the index of the GPU, because the number of GPUs
// isn't known.
func completeFault(dir *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		var out []string
		switch len(args) {
		case 0:
			return completeHosts(dir)(cmd, args, word)
		case 2:
			for _, f := range faults() {
				for _, e := range f.examples {
					out = append(out, cobra.CompletionWithDesc(f.name+e[0], e[1]))
				}
				if f.value == "" {
					out = append(out, cobra.CompletionWithDesc(f.name, f.what))
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
