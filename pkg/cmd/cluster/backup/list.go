package backup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// ListOptions are the options of "paictl cluster backup list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Output  cmdutil.Output
	Place   placeFlags
	To      string
	Cluster string
}

// NewCmdList returns "paictl cluster backup list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the backups of a folder",
		Long:    `Lists the backups of a folder by their names, the latest first. It doesn't open them.` + places,
		Example: `  paictl cluster backup list --to /mnt/backups
  paictl cluster backup list --to /mnt/backups --cluster pai -o json
  paictl cluster backup list --to s3://backups/pai --s3-endpoint https://s3.example.org`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	addFolderFlags(cmd, &opts.To, &opts.Cluster)
	opts.Place.addAlone(cmd, f)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func addFolderFlags(cmd *cobra.Command, to, cluster *string) {
	cmd.Flags().StringVar(to, "to", ".", "the `FOLDER` of the backups")
	cmd.Flags().StringVar(cluster, "cluster", "", "only those of the cluster of this `NAME`; NAME.ID is one of several clusters of that name")
}

func listRun(ctx context.Context, opts *ListOptions) (err error) {
	to, err := opts.Place.open(opts.Factory, opts.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	files, err := to.List(ctx, opts.Cluster)
	if err != nil {
		return err
	}
	if len(files) == 0 && opts.Output.IsTable() {
		fmt.Fprintf(opts.Factory.IO.Err, "no backups in %s -> make one with: paictl cluster backup --to %s\n", opts.To, hint.Quote(opts.To))
		return nil
	}
	return opts.Output.Write(opts.Factory.IO.Out, files, table(files, time.Now()))
}

func table(files []backup.File, now time.Time) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"FILE", "CLUSTER", "TIME", "AGE", "SIZE"}}
	for _, f := range files {
		t.Rows = append(t.Rows, []string{
			f.Path, backup.Of(f.Cluster, f.ID), f.Time.Local().Format("2006-01-02 15:04"), humanize.RelTime(f.Time, now, "", ""), humanize.IBytes(uint64(f.Size)),
		})
	}
	return t
}

// PruneOptions are the options of "paictl cluster backup prune".
type PruneOptions struct {
	Factory *cmdutil.Factory
	Output  cmdutil.Output
	Place   placeFlags
	To      string
	Cluster string
	Keep    backup.Keep
	DryRun  bool
	Yes     bool
}

// NewCmdPrune returns "paictl cluster backup prune".
func NewCmdPrune(f *cmdutil.Factory) *cobra.Command {
	opts := &PruneOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete old backups of a folder",
		Long: `Deletes the backups of a folder, except the latest ones (--keep-last) and the last one of each of the latest
days (--keep-daily) and weeks (--keep-weekly) that have one. It reads only the names of the files, and asks first. It
counts the backups of each cluster separately, also those of clusters with the same name, such as one that was restored from
the other's backup. The latest backup of a cluster always stays, and so does the latest one with the history of jobs: if a
backup should have the history but doesn't, its name ends with -without-history.` + places,
		Example: `  paictl cluster backup prune --to /mnt/backups --dry-run
  paictl cluster backup prune --to /mnt/backups --keep-daily 7 --keep-weekly 4 --yes
  paictl cluster backup prune --to ssh://backup@nas/srv/backups --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Keep.Last < 0 || opts.Keep.Daily < 0 || opts.Keep.Weekly < 0 {
				return cmdutil.Usagef("--keep-last, --keep-daily and --keep-weekly are 0 or more")
			}
			return pruneRun(cmd.Context(), opts)
		},
	}
	addFolderFlags(cmd, &opts.To, &opts.Cluster)
	opts.Place.addAlone(cmd, f)
	cmd.Flags().IntVar(&opts.Keep.Last, "keep-last", 3, "keep this number of the latest backups")
	cmd.Flags().IntVar(&opts.Keep.Daily, "keep-daily", 7, "keep the last backup of each day, for this number of days")
	cmd.Flags().IntVar(&opts.Keep.Weekly, "keep-weekly", 4, "keep the last backup of each week, for this number of weeks")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be deleted")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func pruneRun(ctx context.Context, opts *PruneOptions) (err error) {
	to, err := opts.Place.open(opts.Factory, opts.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	files, err := to.List(ctx, opts.Cluster)
	if err != nil {
		return err
	}
	expired := opts.Keep.ExpiredOfAll(files)
	io := opts.Factory.IO
	if len(expired) == 0 {
		if opts.Output.IsTable() {
			fmt.Fprintf(io.Err, "nothing to delete in %s; it has %s\n", opts.To, plural.Of(len(files), "backup"))
			return nil
		}
		return opts.Output.Write(io.Out, []backup.File{}, cmdutil.Table{})
	}
	if err := opts.Output.Write(io.Out, expired, table(expired, time.Now())); err != nil || opts.DryRun {
		return err
	}
	stay := fmt.Sprintf("%s of %s", plural.Of(len(expired), "backup"), plural.Of(len(files), "backup"))
	if err := prompt.Confirm(io, opts.Yes, "deleting backups", "Delete "+stay+"?"); err != nil {
		return err
	}
	for _, f := range expired {
		if err := to.Delete(ctx, path.Base(f.Path)); err != nil {
			return err
		}
	}
	if opts.Output.IsTable() {
		fmt.Fprintln(io.Err, "deleted "+stay)
	}
	return nil
}
