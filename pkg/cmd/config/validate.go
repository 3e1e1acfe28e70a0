package config

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ValidateOptions are the options of "paictl config validate".
type ValidateOptions struct {
	IO     *iostreams.IOStreams
	Dir    string
	Output cmdutil.Output
}

// validated is the output of "validate -o json".
type validated struct {
	Valid    bool            `json:"valid"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	Findings config.Findings `json:"findings"`
}

// NewCmdValidate returns "paictl config validate".
func NewCmdValidate(f *cmdutil.Factory) *cobra.Command {
	opts := &ValidateOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration and report everything that is wrong in it",
		Long: `Reads the four files strictly and checks all rules. Every finding names file, line, column, field
and rule, and says what to do. It connects to no machine.

The exit code is 1 if there are errors; with warnings only, it is 0.`,
		Example: `  paictl config validate -p ./cluster
  paictl config validate -p ./cluster -o json | jq '.findings[].rule'`,
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			return validateRun(opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func validateRun(opts *ValidateOptions) error {
	findings, err := config.ValidateDir(opts.Dir, services.Check)
	if err != nil {
		return err
	}
	v := validated{Valid: findings.Err() == nil, Errors: len(findings.Errors()), Warnings: len(findings.Warnings()), Findings: findings}
	if v.Findings == nil {
		v.Findings = config.Findings{}
	}
	if opts.Output.Is("text") {
		err = findings.Write(opts.IO.Out)
		fmt.Fprintf(opts.IO.Err, "%s: %s\n", opts.Dir, findings.Summary())
	} else {
		err = opts.Output.Write(opts.IO.Out, v, cmdutil.Table{})
	}
	if err == nil && !v.Valid {
		return cmdutil.ErrSilent
	}
	return err
}
