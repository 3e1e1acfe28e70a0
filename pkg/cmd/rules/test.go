package rules

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// TestOptions are the options of "paictl rules test".
type TestOptions struct {
	IO          *iostreams.IOStreams
	Output      cmdutil.Output
	ExitCode    int
	UserLog     string
	PlatformLog string
	GPUECC      bool
	GPUFault    string
	OOMKilled   bool
	Rules       string
}

// tested is the output of "test -o json".
type tested struct {
	Code     int    `json:"code"`
	Phrase   string `json:"phrase"`
	Type     string `json:"type"`
	Behavior string `json:"behavior"`
	Reaction string `json:"reaction"`
	Causer   string `json:"causer"`
	Reason   string `json:"reason"`
	// Matched is the reason why the rule matched: a text in a log, "exit code N", or another fact. It is empty if no rule matched.
	Matched  string   `json:"matched"`
	Solution []string `json:"solution"`
	// Report is the termination message that the task would write. It is empty if the task succeeded.
	Report string `json:"report"`
}

// NewCmdTest returns "paictl rules test".
func NewCmdTest(f *cmdutil.Factory) *cobra.Command {
	opts := &TestOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "test --exit-code N",
		Short: "Show which rule matches a failure",
		Long: `Says which code a task would get if its program ended like this, and prints the report that it
would leave. Without --rules it uses the built-in set. It connects to no cluster.`,
		Example: `  paictl rules test --exit-code 1 --user-log train.log
  paictl rules test --exit-code 137 --oom-killed -o json
  paictl rules test --rules rules.yaml --exit-code 1 --user-log train.log --platform-log runtime.log`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("exit-code") {
				return cmdutil.Usagef("say how the program ended with --exit-code (see %s --help)", cmd.CommandPath())
			}
			if opts.ExitCode < 0 || opts.ExitCode > 255 {
				return cmdutil.Usagef("--exit-code %d: a program ends with 0 to 255; after signal n it is 128+n", opts.ExitCode)
			}
			return testRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&opts.ExitCode, "exit-code", 0, "exit code of the program; 128+n after signal n")
	fl.StringVar(&opts.UserLog, "user-log", "", "file with the output of the program")
	fl.StringVar(&opts.PlatformLog, "platform-log", "", "file with the output of the runtime")
	fl.BoolVar(&opts.GPUECC, "gpu-ecc", false, "a GPU of the task reports double-bit errors")
	fl.StringVar(&opts.GPUFault, "gpu-fault", "", "fault of a GPU of the task, as the agent of the machine reports it")
	fl.BoolVar(&opts.OOMKilled, "oom-killed", false, "the kernel killed a process of the task because of its memory")
	fl.StringVar(&opts.Rules, "rules", "", "file of rules (default: the built-in ones)")
	for _, name := range []string{"user-log", "platform-log", "rules"} {
		_ = cmd.MarkFlagFilename(name)
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func testRun(_ context.Context, opts *TestOptions) error {
	set := rules.Builtin()
	if opts.Rules != "" {
		var err error
		if set, _, _, err = load(opts.IO.In, opts.Rules); err != nil {
			return err
		}
	}
	e := rules.Exit{Code: opts.ExitCode, GPUECC: opts.GPUECC, GPUFault: opts.GPUFault, OOMKilled: opts.OOMKilled}
	var err error
	if e.UserLog, err = readEnd(opts.UserLog); err != nil {
		return err
	}
	if e.PlatformLog, err = readEnd(opts.PlatformLog); err != nil {
		return err
	}
	m := set.ClassifyExit(e)
	t := tested{Code: m.Code, Phrase: m.Rule.Phrase, Type: m.Rule.Type, Behavior: m.Rule.Behavior, Reaction: m.Rule.Reaction, Causer: m.Rule.Causer,
		Reason: m.Rule.Reason, Matched: m.Matched(), Solution: append([]string{}, m.Rule.Solution...)}
	if m.Code != rules.CodeSucceeded {
		t.Report = string(report.Encode(report.New(e, m)))
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.IO.Out, t, cmdutil.Table{})
	}
	return t.write(opts.IO.Out)
}

// readEnd reads the end of a log, which is the part that rules search.
func readEnd(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Size() > rules.MaxLog {
		if _, err := f.Seek(-rules.MaxLog, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(f)
}

func (t *tested) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", t.Code, t.Phrase)
	for _, f := range [][2]string{{"type", t.Type}, {"caused by", t.Causer}, {"behavior", t.Behavior}, {"reaction", t.Reaction},
		{"reason", t.Reason}, {"matched", strings.ReplaceAll(t.Matched, "\n", "\n            ")}} {
		if f[1] != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", f[0], f[1])
		}
	}
	for _, s := range t.Solution {
		fmt.Fprintf(&b, "  -> %s\n", s)
	}
	if t.Report != "" {
		b.WriteString("\n" + t.Report)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
