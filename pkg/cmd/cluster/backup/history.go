package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/dustin/go-humanize"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// historyRun adds the history of jobs in a backup to a running cluster.
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
		return hint.Errorf("if the history is in PostgreSQL, restore it from a backup of that database; other backups: paictl cluster backup list",
			"the backup has no history of jobs%s", why(m))
	}
	c, err := session.MasterKubeconfig(ctx, s.Spec, s.Options)
	if err != nil {
		return err
	}
	if err := opts.sameUID(ctx, c.Client, m); err != nil {
		return err
	}
	announced := fmt.Sprintf("The history of jobs of %s as it was at %s (%s) is added to the history that its job controller has now.\nJobs that it already has stay as they are; jobs that were deleted since then are restored.",
		terminal.Word(m.Cluster), localTime(m), humanize.IBytes(uint64(m.Parts[i].Size)))
	if opts.DryRun || opts.Confirm != "" {
		fmt.Fprintln(opts.Factory.IO.Err, announced)
	} else if err := s.ConfirmName(announced, m.Cluster); err != nil {
		return err
	}
	if opts.DryRun {
		return nil
	}
	added, err := putBack(ctx, c, filepath.Join(dir, backup.PartJobs), m.Parts[i].Size)
	if err != nil {
		return hint.Wrap(fmt.Errorf("restore the history of jobs: %w", err), "run it again when the job controller works: paictl service start -n job-controller")
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, added, cmdutil.Table{})
	}
	w := opts.Factory.IO.Err
	fmt.Fprintf(w, "%s restored; already there: %d\n", plural.Of(added.Jobs, "job"), added.Known)
	if added.CodeLeftOut > 0 {
		fmt.Fprintf(w, "! the code of %s isn't restored: retention.codeGiB or retention.codeGiBPerUser of the section job-controller is too small -> set it higher and run this again\n",
			plural.Of(added.CodeLeftOut, "submission"))
	}
	return nil
}

// historyOnDisk returns the history for a restore that writes the history into the folder of the job controller. If this is not possible, it
// returns nil and left contains the reason. If the backup has no history, it returns nil and "".
func historyOnDisk(ctx context.Context, m *backup.Manifest, dir string, s *session.Session) (on *engine.RestoreHistory, left string, err error) {
	if historyOf(m) < 0 {
		return nil, "", nil
	}
	all, _, err := catalogue.Load(ctx, s.Config, catalogue.Options{})
	if err != nil {
		return nil, "", err
	}
	service := all.Get(api.Service)
	if service == nil || !service.Enabled {
		return nil, "the service job-controller is off", nil
	}
	if postgres, _ := service.Values["postgresql"].(map[string]any); postgres["enabled"] == true {
		return nil, "the job controller has it in PostgreSQL", nil
	}
	for _, v := range all.LocalVolumes() {
		if v.Service != api.Service {
			continue
		}
		if first := s.Spec.ControlPlane()[0].Hostname; v.Node != first {
			return nil, fmt.Sprintf("the job controller's volume will be on %s, and %s founds the cluster", v.Node, first), nil
		}
		if stays(v, m) {
			return nil, "the job controller's volume may be on a different machine than " + v.Node + " already", nil
		}
		file, err := unpacked(m, dir, backup.PartJobs)
		if err != nil {
			return nil, "", err
		}
		return &engine.RestoreHistory{RestoreFile: file, Node: v.Node, Folder: v.Path, Owner: v.Owner}, "", nil
	}
	return nil, "paictl doesn't make the job controller's volume", nil
}

// stays reports whether the data of a volume may already be on another machine. Only machines that belong both to the cluster of the backup and
// to this cluster are considered.
func stays(v catalogue.LocalVolume, m *backup.Manifest) bool {
	return slices.ContainsFunc(m.Machines, func(of backup.Machine) bool { return of.Name != v.Node && slices.Contains(v.Machines, of.Name) })
}

// sameUID returns an error if the history belongs to another cluster with the same name, unless --other-cluster allows that.
func (opts *RestoreOptions) sameUID(ctx context.Context, c kubernetes.Interface, m *backup.Manifest) error {
	uid, _, err := kube.Identity(ctx, c, backup.NotesName)
	switch {
	case err != nil:
		return err
	case m.UID == "":
		fmt.Fprintln(opts.Factory.IO.Err, "! the backup has no UID of its cluster: only the name was compared")
	case m.UID != uid && opts.OtherCluster:
		fmt.Fprintf(opts.Factory.IO.Err, "! the backup belongs to another cluster with the name %s\n", terminal.Word(m.Cluster))
	case m.UID != uid:
		return hint.Errorf("take a backup of this cluster, or of the one from which it was restored; to add the history of the other one nevertheless: --other-cluster",
			"the backup belongs to another cluster with the name %s: its namespace kube-system has the UID %s, and that of this cluster %s", terminal.Word(m.Cluster), terminal.Word(m.UID), uid)
	}
	return nil
}

func putBack(ctx context.Context, c *kube.Cluster, file string, size int64) (*api.Import, error) {
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

// historyOf returns the index of the part that contains the history of jobs, or -1 if the backup has no such part.
func historyOf(m *backup.Manifest) int {
	return slices.IndexFunc(m.Parts, func(p backup.Part) bool { return p.Name == backup.PartJobs })
}

// why returns the reason why a backup has no history of jobs, beginning with a colon. It returns "" if the reason isn't known.
func why(m *backup.Manifest) string {
	for _, lacks := range m.Missing {
		return ": " + terminal.Line(lacks.Why)
	}
	return ""
}
