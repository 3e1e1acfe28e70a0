package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/config/store/source"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// DiffOptions are the options of "paictl config diff".
type DiffOptions struct {
	IO       *iostreams.IOStreams
	Kube     kube.Options
	Output   cmdutil.Output
	Dir      string
	From     string
	ExitCode bool
}

// compared is the output of "diff -o json".
type compared struct {
	Cluster store.Revision     `json:"cluster"`
	Changes []store.FileChange `json:"changes"`
}

// NewCmdDiff returns "paictl config diff".
func NewCmdDiff(f *cmdutil.Factory) *cobra.Command {
	opts := &DiffOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Show how a folder differs from the cluster's configuration",
		Long: `Prints a unified diff from the cluster's copy to the folder. Secrets are masked; if one
differs, only its field is shown.`,
		Example: `  paictl config diff -p ./cluster
  paictl config diff -p ./cluster --exit-code || echo "not pushed yet"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if opts.Dir, err = chooseFolder(cmd, opts.Dir, opts.From); err != nil {
				return err
			}
			return diffRun(cmd.Context(), opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	addFromFlag(cmd, &opts.From)
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "exit with code 6 if they differ")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func diffRun(ctx context.Context, opts *DiffOptions) error {
	folder, err := source.Open(ctx, opts.Dir, source.Options{Ask: opts.IO.CanPrompt()})
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // it is a copy
	files, err := config.ReadFiles(folder.Dir)
	if err != nil {
		return err
	}
	s, err := openStored(opts.Kube)
	if err != nil {
		return err
	}
	r, changes, err := s.Diff(ctx, folder.Dir, files)
	if err != nil {
		return s.cluster.Explain(err)
	}
	if opts.Output.Is("text") {
		if len(changes) == 0 {
			fmt.Fprintf(opts.IO.Err, "%s has the same files as revision %d of cluster %s\n", folder, r.Number, r.ClusterID)
		}
		err = writeChanges(opts.IO.Out, changes)
	} else {
		err = opts.Output.Write(opts.IO.Out, compared{r, append([]store.FileChange{}, changes...)}, cmdutil.Table{})
	}
	if err == nil && opts.ExitCode && len(changes) > 0 {
		return &cmdutil.CodeError{Err: errors.New("the folder differs"), Code: cmdutil.ExitPending, Silent: true}
	}
	return err
}
