package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/openpai/paictl/pkg/backup"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/terminal"
)

// historyRun gives a cluster that runs the history of jobs of a backup.
func historyRun(ctx context.Context, opts *RestoreOptions, s *session.Session, dir string) error {
	m, _, err := archive{Factory: opts.Factory, File: opts.File, Keys: &opts.Keys, Place: &opts.Place}.each(ctx, func(name string, _ int64, r io.Reader) error {
		if name != backup.PartJobs {
			return nil
		}
		out, err := os.OpenFile(filepath.Join(dir, backup.PartJobs), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		return errors.Join(err, out.Close())
	})
	if err != nil {
		return err
	}
	if err := sameCluster(m, s); err != nil {
		return err
	}
	i := historyOf(m)
	if i < 0 {
		return hint.Errorf("where the history is in PostgreSQL, that has backups of its own; another backup: paictl cluster backup list",
			"the backup has no history of jobs%s", why(m))
	}
	announced := fmt.Sprintf("The history of jobs of %s as it was at %s (%s) is added to what its job controller has now.\nWhat is there already stays; jobs that were deleted since then come back.",
		terminal.Word(m.Cluster), localTime(m), humanize.IBytes(uint64(m.Parts[i].Size)))
	if opts.DryRun || opts.Confirm != "" {
		fmt.Fprintln(opts.Factory.IO.Err, announced)
	} else if err := s.ConfirmName(announced, m.Cluster); err != nil {
		return err
	}
	if opts.DryRun {
		return nil
	}
	added, err := putBack(ctx, s, filepath.Join(dir, backup.PartJobs), m.Parts[i].Size)
	if err != nil {
		return hint.Wrap(fmt.Errorf("put the history of jobs back: %w", err), "run it again when the job controller works: paictl service start -n job-controller")
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, added, cmdutil.Table{})
	}
	w := opts.Factory.IO.Err
	fmt.Fprintf(w, "%s put back, %s were there already\n", plural.Of(added.Jobs, "job"), plural.Of(added.Known, "job"))
	if added.CodeLeftOut > 0 {
		fmt.Fprintf(w, "! the code of %s isn't put back: retention.codeGiB or retention.codeGiBPerUser of the section job-controller is too small -> set it higher and run this again\n",
			plural.Of(added.CodeLeftOut, "submission"))
	}
	return nil
}

func putBack(ctx context.Context, s *session.Session, file string, size int64) (*api.Import, error) {
	c, err := session.MasterKubeconfig(ctx, s.Spec, s.Options)
	if err != nil {
		return nil, err
	}
	jobs, err := job.New(c)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return jobs.History.PutBack(ctx, f, size)
}

// historyOf is which part of a backup is the history of jobs; -1 where none is.
func historyOf(m *backup.Manifest) int {
	return slices.IndexFunc(m.Parts, func(p backup.Part) bool { return p.Name == backup.PartJobs })
}

// why says why a backup has no history of jobs, where that is known.
func why(m *backup.Manifest) string {
	for _, lacks := range m.Missing {
		return ": " + terminal.Line(lacks.Why)
	}
	return ""
}
