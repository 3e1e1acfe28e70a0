package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// unpack writes the parts of an archive into the folder dir, which must be empty or missing, and returns the manifest. After an error, it
// removes the files that it wrote.
func (a archive) unpack(ctx context.Context, dir string) (m *backup.Manifest, size int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, empty(dir))
		}
	}()
	return a.each(ctx, func(name string, _ int64, r io.Reader) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		return errors.Join(err, out.Close())
	})
}

func empty(dir string) error {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// ExtractOptions are the options of "paictl cluster backup extract".
type ExtractOptions struct {
	Factory *cmdutil.Factory
	Keys    keyFlags
	Place   placeFlags
	File    string
	To      string
}

// NewCmdExtract returns "paictl cluster backup extract".
func NewCmdExtract(f *cmdutil.Factory) *cobra.Command {
	opts := &ExtractOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "extract FILE --to FOLDER",
		Short: "Write the parts of a backup into a folder",
		Long: `Writes the contents of a backup into a new folder (mode 0700), not encrypted: config/ with the configuration folder,
etcd.db in the format of etcd's own tools, keys.tar with the keys of the control plane, and jobs.db with the history of jobs (SQLite).
Use it if the configuration folder is lost as well, before "paictl cluster restore", and delete the folder afterwards.
FILE may be on another machine or in S3: see "paictl cluster backup".`,
		Example: `  paictl cluster backup extract pai-20261127T020000Z.paictl-backup --to ./unpacked
  cp -r ./unpacked/config ./cluster
  paictl cluster backup extract s3://backups/pai/pai-20261127T020000Z.paictl-backup --to ./unpacked --identity key.txt`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			if opts.To == "" {
				return cmdutil.Usagef("--to FOLDER is missing")
			}
			return extractRun(cmd.Context(), opts)
		},
	}
	opts.Keys.add(cmd)
	opts.Place.addAlone(cmd, f)
	cmd.Flags().StringVar(&opts.To, "to", "", "the new `FOLDER`, on this machine")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

func extractRun(ctx context.Context, opts *ExtractOptions) error {
	all, err := os.ReadDir(opts.To)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(all) > 0 {
		return hint.Errorf("name a new folder", "%s isn't empty", opts.To)
	}
	m, _, err := archive{Factory: opts.Factory, File: opts.File, Keys: &opts.Keys, Place: &opts.Place}.unpack(ctx, opts.To)
	if err != nil {
		return err
	}
	fmt.Fprintf(opts.Factory.IO.Err, "%s in %s, not encrypted -> delete it when you are done: rm -r %s\n",
		plural.Of(len(m.Parts), "part"), opts.To, hint.Quote(opts.To))
	return nil
}

// completeFile completes the name of a file with a backup.
func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{strings.TrimPrefix(backup.Ending, ".")}, cobra.ShellCompDirectiveFilterFileExt
}
