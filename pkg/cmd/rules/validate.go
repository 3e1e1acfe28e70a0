package rules

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ValidateOptions are the options of "paictl rules validate".
type ValidateOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	Files  []string
}

// validated is the output of "validate -o json" about one file.
type validated struct {
	File     string              `json:"file"`
	Valid    bool                `json:"valid"`
	Rules    int                 `json:"rules"`
	Findings strictyaml.Findings `json:"findings"`
}

// NewCmdValidate returns "paictl rules validate".
func NewCmdValidate(f *cmdutil.Factory) *cobra.Command {
	opts := &ValidateOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Find mistakes in files of failure rules",
		Long: `Reports everything that is wrong in the files, with line, field and remedy: codes that are reserved or
used twice, unknown keys, regexes that don't compile or match everything, rules that an earlier rule always
hides. It connects to no cluster. The exit code is 1 if there are errors.`,
		Example: `  paictl rules validate rules.yaml
  paictl rules validate - -o json < rules.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Files = args
			return validateRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func validateRun(_ context.Context, opts *ValidateOptions) error {
	var all []validated
	wrong := false
	for _, name := range opts.Files {
		name, data, err := readFile(opts.IO.In, name)
		if err != nil {
			return err
		}
		set, findings := rules.Parse(name, data)
		v := validated{File: name, Valid: findings.Err() == nil, Findings: append(strictyaml.Findings{}, findings...)}
		if v.Valid {
			v.Rules = len(set.Rules)
		}
		wrong = wrong || !v.Valid
		all = append(all, v)
		if !opts.Output.Is("text") {
			continue
		}
		if err := findings.Write(opts.IO.Out); err != nil {
			return err
		}
		fmt.Fprintf(opts.IO.Err, "%s: %s\n", name, summary(v))
	}
	if !opts.Output.Is("text") {
		if err := opts.Output.Write(opts.IO.Out, all, cmdutil.Table{}); err != nil {
			return err
		}
	}
	if wrong {
		return cmdutil.ErrSilent
	}
	return nil
}

func summary(v validated) string {
	if !v.Valid {
		return v.Findings.Summary()
	}
	return fmt.Sprintf("%d rules, %s", v.Rules, v.Findings.Summary())
}
