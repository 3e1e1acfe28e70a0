package job

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ValidateOptions are the options of "paictl job validate".
type ValidateOptions struct {
	IO     *iostreams.IOStreams
	Files  []string
	Output cmdutil.Output
}

// validated is the result of the check of one file.
type validated struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Errors   []mistake `json:"errors"`
	Warnings []mistake `json:"warnings"`
}

type mistake struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	Rule    string `json:"rule"`
}

// NewCmdValidate returns "paictl job validate".
func NewCmdValidate(f *cmdutil.Factory) *cobra.Command {
	opts := &ValidateOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check job files and report everything that is wrong in them",
		Long: `Reads job files strictly, fills in defaults and references, and reports all mistakes together: file,
line, column, field, and what to do. FILE can be - for standard input. It doesn't connect to a cluster;
submit, or render with --kubeconfig, checks the settings that only the cluster knows (virtual clusters,
types of GPU, storages).

The exit code is 1 if a file is not valid.`,
		Example: `  paictl job validate train.yaml
  paictl job validate jobs/*.yaml -o json | jq '.[] | select(.valid | not) | .errors'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			opts.Files = args
			return validateRun(opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// withoutPath returns the text of an error without the path of the file, which the output already contains.
func withoutPath(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("%s: %v", p.Op, p.Err)
	}
	return err.Error()
}

func validateRun(opts *ValidateOptions) error {
	out := []validated{}
	bad := 0
	for _, name := range opts.Files {
		data, err := readJob(opts.IO, name)
		_, findings := protocol.Parse(name, data)
		if err != nil {
			findings = strictyaml.Findings{{File: name, Rule: "job/file", Severity: strictyaml.Error, Message: withoutPath(err), Remedy: "write the name of a file that can be read, or - for standard input"}}
		}
		v := validated{File: name, Valid: findings.Err() == nil, Errors: mistakes(findings.Errors()), Warnings: mistakes(findings.Warnings())}
		if !v.Valid {
			bad++
		}
		out = append(out, v)
		if !opts.Output.Is("text") {
			continue
		}
		if err := findings.Write(opts.IO.Out); err != nil {
			return err
		}
		opts.IO.Say("%s: %s", name, findings.Summary())
	}
	if !opts.Output.Is("text") {
		if err := opts.Output.Write(opts.IO.Out, out, cmdutil.Table{}); err != nil {
			return err
		}
	}
	if bad > 0 {
		return cmdutil.ErrSilent
	}
	return nil
}

func mistakes(findings strictyaml.Findings) []mistake {
	out := []mistake{}
	for _, f := range findings {
		out = append(out, mistake{Path: f.Field, Line: f.Line, Column: f.Column, Message: f.Message, Remedy: f.Remedy, Rule: f.Rule})
	}
	return out
}
