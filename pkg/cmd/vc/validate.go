package vc

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// ValidateOptions are the options of "paictl vc validate".
type ValidateOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
	Dir     string
	Offline bool
}

// NewCmdValidate returns "paictl vc validate".
func NewCmdValidate(f *cmdutil.Factory) *cobra.Command {
	opts := &ValidateOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check virtual clusters, and say how they would affect running jobs",
		Long: `Checks the section scheduler of a folder (-p), or of the configuration that the cluster stores,
against the hardware of the layout, and asks the running scheduler how its gangs would be affected. It changes
nothing.`,
		Example: `  paictl vc validate -p ./cluster
  paictl vc validate -p ./cluster --offline   # connect to no cluster
  paictl vc validate -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Offline && opts.Dir == "" {
				return cmdutil.Usagef("--offline needs a folder: -p DIR (see %s --help)", cmd.CommandPath())
			}
			return validateRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmd.Flags().StringVarP(&opts.Dir, "config-path", "p", "", "check this folder instead of the cluster's configuration")
	_ = cmd.MarkFlagDirname("config-path")
	cmd.Flags().BoolVar(&opts.Offline, "offline", false, "connect to no cluster")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func validateRun(ctx context.Context, opts *ValidateOptions) error {
	var c *cluster
	var err error
	if !opts.Offline {
		if c, err = open(opts.Kube); err != nil {
			return err
		}
	}
	desired, err := opts.load(ctx, c)
	if err != nil {
		if c != nil {
			err = c.Explain(err)
		}
		return err
	}
	cells, found := catalogue.SchedulerConfig(desired)
	result := &api.Validation{Valid: len(found.Errors()) == 0}
	asked := false
	if result.Valid {
		note := ""
		if c != nil {
			text, err := schedulerconfig.Encode(cells)
			if err != nil {
				return err
			}
			if result, note, err = ask(ctx, c, text); err != nil {
				return c.Explain(err)
			}
			asked = note == ""
		}
		if note != "" {
			opts.Factory.IO.Say("%s", note)
		}
	}
	for _, f := range found {
		result.Problems = append(result.Problems, api.Problem{Severity: string(f.Severity), Line: f.Line, Column: f.Column, Path: f.Field, Message: f.Message, Remedy: f.Remedy})
	}
	return opts.tell(result, found, asked)
}

// load reads the configuration from the folder. Without a folder, it reads the configuration that the cluster stores.
func (opts *ValidateOptions) load(ctx context.Context, c *cluster) (*config.Cluster, error) {
	if opts.Dir != "" {
		return config.Load(opts.Dir)
	}
	held, _, err := c.store.Load(ctx)
	return held, err
}

// ask sends the configuration to the scheduler, which returns its effects. If no scheduler runs, the note reports that.
func ask(ctx context.Context, c *cluster, text []byte) (result *api.Validation, note string, err error) {
	result, err = c.scheduler.Validate(ctx, text)
	if errors.Is(err, vc.ErrNotRunning) {
		return &api.Validation{Valid: true}, err.Error() + ": the effect on gangs is not known", nil
	}
	return result, "", err
}

func (opts *ValidateOptions) tell(result *api.Validation, found config.Findings, asked bool) error {
	invalid := &cmdutil.CodeError{Err: errors.New("the virtual clusters are not valid"), Code: cmdutil.ExitFailure, Silent: true}
	if !opts.Output.Is("text") {
		if err := opts.Output.Write(opts.Factory.IO.Out, result, cmdutil.Table{}); err != nil || result.Valid {
			return err
		}
		return invalid
	}
	if err := found.Err(); err != nil {
		return err // with their positions in the file
	}
	if err := found.Write(opts.Factory.IO.Err); err != nil {
		return err
	}
	result.Problems = result.Problems[:len(result.Problems)-len(found)] // they have just been printed
	if !asked {
		_, err := fmt.Fprintln(opts.Factory.IO.Out, "the virtual clusters fit the hardware")
		return err
	}
	if err := writeValidation(opts.Factory.IO.Out, result); err != nil || result.Valid {
		return err
	}
	return invalid
}
