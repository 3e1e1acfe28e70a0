package config

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// PullOptions are the options of "paictl config pull".
type PullOptions struct {
	IO       *iostreams.IOStreams
	Kube     kube.Options
	OutDir   string
	Force    bool
	Mask     bool
	Revision int
}

// NewCmdPull returns "paictl config pull".
func NewCmdPull(f *cmdutil.Factory) *cobra.Command {
	opts := &PullOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "pull -o DIR",
		Short: "Write the cluster's configuration into a folder",
		Long: `Writes the four files exactly as they were pushed, including secrets; only the owner can read
files with secrets. Existing files that differ are replaced only with -f.

The folder records the revision, so that a later push detects the changes that others have pushed since.`,
		Example: `  paictl config pull -o ./cluster
  paictl config pull -o ./to-show --mask-secrets
  paictl config pull -o ./before --revision 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.OutDir == "" {
				return cmdutil.Usagef("give the folder to write with -o (see %s --help)", cmd.CommandPath())
			}
			if opts.Revision < 0 {
				return cmdutil.Usagef("--revision must be more than 0")
			}
			return pullRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	fl := cmd.Flags()
	fl.StringVarP(&opts.OutDir, "output", "o", "", "folder to write; created if it is missing")
	fl.BoolVarP(&opts.Force, "force", "f", false, "replace files that differ")
	fl.BoolVar(&opts.Mask, "mask-secrets", false, "write "+`"********"`+" in place of each secret; such a folder can't be pushed")
	fl.IntVar(&opts.Revision, "revision", 0, "an earlier revision (see: paictl config history)")
	_ = cmd.MarkFlagDirname("output")
	_ = cmd.RegisterFlagCompletionFunc("revision", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return completeRevisions(cmd.Context(), opts.Kube), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func pullRun(ctx context.Context, opts *PullOptions) error {
	s, err := openStored(opts.Kube)
	if err != nil {
		return err
	}
	c, err := pullCopy(ctx, s, opts.Revision)
	if err != nil {
		return s.cluster.Explain(err)
	}
	files, private := c.Files, c.Private
	if opts.Mask {
		files, private = c.Masked(), func(string) bool { return false }
	}
	if differing := differ(opts.OutDir, files); len(differing) > 0 && !opts.Force {
		return hint.Errorf("give -f to replace them, or -o another folder; nothing was written",
			"these files differ from revision %d: %s", c.Revision.Number, strings.Join(differing, ", "))
	}
	if !opts.Mask { // a folder without its secrets has no base
		if files[store.BaseFile], err = store.BaseOf(c.Revision).Bytes(); err != nil {
			return err
		}
	}
	if err := config.WriteFolder(opts.OutDir, files, private, true); err != nil {
		return err
	}
	fmt.Fprintf(opts.IO.Err, "wrote revision %d of cluster %s to %s\n", c.Revision.Number, c.Revision.ClusterID, opts.OutDir)
	return nil
}

func pullCopy(ctx context.Context, s *stored, revision int) (*store.Copy, error) {
	if revision == 0 {
		return s.Pull(ctx)
	}
	return s.At(ctx, revision)
}

// differ returns the names of the files that exist in the folder dir with different content.
func differ(dir string, files map[string][]byte) []string {
	var out []string
	for _, name := range config.Files() {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, files[name]) {
			out = append(out, path)
		}
	}
	return out
}

// parseRevision parses the number of a revision.
func parseRevision(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, cmdutil.Usagef("%q is not the number of a revision (see: paictl config history)", text)
	}
	return n, nil
}
