package backup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/progress"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// RestoreOptions are the options of "paictl cluster restore".
type RestoreOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	Keys    keyFlags
	Place   placeFlags
	File    string
	DryRun  bool
	Confirm string
	// History means that only the history of jobs is restored, into a running cluster.
	History bool
	// OtherCluster allows restoring the history of another cluster with the same name.
	OtherCluster bool
}

// NewCmdRestore returns "paictl cluster restore".
func NewCmdRestore(f *cmdutil.Factory) *cobra.Command {
	opts := &RestoreOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a cluster from a backup, on the same machines or on others",
		Long: `Makes a cluster as "cluster up" does, but with the objects of Kubernetes and the keys of a backup. The configuration
folder names the machines: write other names and addresses into its layout.yaml if you have others.
None of them may belong to a cluster; "paictl cluster down" takes one down.

The whole backup is checked before a machine is contacted. Then it shows what would be restored and asks you to type
the cluster's name; without a terminal, --confirm NAME is needed. If it is interrupted at any point, run it again.

Afterwards the machines of the old cluster are no longer nodes, and their pods are gone. Jobs that ran begin again, as after the
loss of their machines. Credentials that were valid stay valid. Data on the machines' disks, such as measurements, isn't restored.

The history of jobs, with the logs of finished tasks and submitted code, is written to the machine that founds the cluster. If the
job controller will store its history on another machine or in PostgreSQL, or if the machine already has another history or not
enough free space, the command ends with the reason. Then restore the history in a second step, when the services run: the same
command with --history. It adds the jobs that the cluster's history doesn't have, changes no other job, and can be repeated. Do it
soon: jobs that begin again need their code. The backup must belong to this cluster, or to the one from which it was restored.
FILE may be on another machine or in S3: see "paictl cluster backup".`,
		Example: `  paictl cluster restore pai-20261127T020000Z.paictl-backup -p ./cluster --dry-run
  paictl cluster restore pai-20261127T020000Z.paictl-backup -p ./cluster --identity key.txt
  paictl cluster restore pai-20261127T020000Z.paictl-backup -p ./cluster --passphrase-file ./passphrase --confirm pai
  paictl cluster restore pai-20261127T020000Z.paictl-backup -p ./cluster --identity key.txt --history
  paictl cluster restore ssh://backup@nas/srv/backups/pai-20261127T020000Z.paictl-backup -p ./cluster --identity key.txt`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			if opts.OtherCluster && !opts.History {
				return cmdutil.Usagef("--other-cluster is for --history alone: a restore takes the cluster of the backup")
			}
			return restoreRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddPeers(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Keys.add(cmd)
	opts.Place.add(cmd, &opts.Flags)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what is in the backup, and what would be changed")
	cmd.Flags().BoolVar(&opts.History, "history", false, "only restore the history of jobs, into a running cluster")
	cmd.Flags().BoolVar(&opts.OtherCluster, "other-cluster", false, "with --history: also accept the history of another cluster with the same name")
	cmd.Flags().StringVar(&opts.Confirm, "confirm", "", "the cluster's `NAME`, in place of the question")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func restoreRun(ctx context.Context, opts *RestoreOptions) error {
	// If the terminal is closed, the keys on disk must still be removed.
	if !signal.Ignored(syscall.SIGHUP) {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	io := opts.Factory.IO
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, opts.needs())
	if err != nil {
		return err
	}
	defer s.Close()
	name := s.Config.Kubernetes.Kubernetes.ClusterName
	switch {
	case opts.Confirm != "" && opts.Confirm != name:
		return cmdutil.Usagef("--confirm %s: the cluster's name is %s", opts.Confirm, name)
	case !opts.DryRun && opts.Confirm == "" && !io.CanPrompt():
		return cmdutil.Usagef("paictl cluster restore must be confirmed, but there is no terminal to ask on: add --confirm %s", name)
	}
	// The parts contain the keys of the cluster. Other users can't read them, and they are removed at the end.
	dir, err := os.MkdirTemp("", "paictl-restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if opts.History {
		return historyRun(ctx, opts, s, dir)
	}
	m, _, err := archive{Factory: opts.Factory, File: opts.File, Keys: &opts.Keys, Place: &opts.Place}.unpack(ctx, dir)
	if err != nil {
		return err
	}
	if err := fits(m, s, dir); err != nil {
		return err
	}
	if err := checkKeys(filepath.Join(dir, backup.PartKeys)); err != nil {
		return err
	}
	if opts.DryRun || opts.Confirm != "" {
		fmt.Fprintln(io.Err, announced(m, s))
	} else if err := s.ConfirmName(announced(m, s), name); err != nil {
		return err
	}
	from, err := parts(m, dir)
	if err != nil {
		return err
	}
	if from.History, from.Left, err = historyOnDisk(ctx, m, dir, s); err != nil {
		return err
	}
	left := from.Left
	if from.History != nil {
		left = "it isn't known what has become of it" // until a machine reports the result
	}
	from.Founded = func(why string) { left = why }
	changes, err := cluster.Restore(ctx, s.Spec, s.Options, from)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if opts.Output.Is("json") {
		return err
	}
	if opts.DryRun && changes != nil {
		if werr := progress.WritePlan(io.Out, changes); werr != nil {
			return werr
		}
	}
	if err == nil && !opts.DryRun {
		fmt.Fprint(io.Err, opts.next(left))
	}
	return err
}

// needs returns the parts that the session must open. A restore of the history needs only the API of the cluster.
func (opts *RestoreOptions) needs() session.Needs {
	if opts.History {
		return session.Needs{ReadOnly: true, Format: "quiet"}
	}
	return session.Needs{Bundle: true, ReadOnly: opts.DryRun, Format: opts.Output.String()}
}

// next returns the next steps after a restore. left is the reason why the history of jobs wasn't restored, or "".
func (opts *RestoreOptions) next(left string) string {
	dir := hint.Quote(opts.Flags.Dir)
	out := fmt.Sprintf("Bring back the rest:\n  paictl cluster kubeconfig -p %[1]s\n  paictl service start -p %[1]s\n", dir)
	if left != "" {
		out += fmt.Sprintf("  paictl cluster restore %s -p %s%s --history\n", hint.Quote(opts.File), dir, opts.Keys.again()+opts.Place.again())
	}
	out += "  paictl status\n"
	if left != "" {
		out += fmt.Sprintf("The history of jobs needs the command with --history: %s.\n", left)
	}
	return out
}

// parts returns the files that the restore needs on the machine that initializes the cluster.
func parts(m *backup.Manifest, dir string) (*engine.RestoreParts, error) {
	keys, err := unpacked(m, dir, backup.PartKeys)
	if err != nil {
		return nil, err
	}
	etcd, err := unpacked(m, dir, backup.PartEtcd)
	if err != nil {
		return nil, err
	}
	return &engine.RestoreParts{Keys: keys, Etcd: etcd}, nil
}

// unpacked returns one part of a backup whose parts are in the folder dir.
func unpacked(m *backup.Manifest, dir, name string) (engine.RestoreFile, error) {
	i := slices.IndexFunc(m.Parts, func(p backup.Part) bool { return p.Name == name })
	if i < 0 {
		return engine.RestoreFile{}, fmt.Errorf("the backup has no %s", name)
	}
	return engine.RestoreFile{Size: m.Parts[i].Size, SHA256: m.Parts[i].SHA256, Open: func() (io.ReadCloser, error) {
		return os.Open(filepath.Join(dir, name))
	}}, nil
}

func checkKeys(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return cluster.CheckKeys(f)
}

// readable returns an error if the Kubernetes release may be unable to read the objects of the backup: if the release is an earlier minor
// version, or more than one minor version later.
func readable(written, by string) error {
	was, err := semver.NewVersion(written)
	if err != nil {
		return nil //nolint:nilerr // the API server was unavailable when the backup was made, so its release isn't known
	}
	is, err := semver.NewVersion(by)
	if err != nil || was.Major() == is.Major() && (is.Minor() == was.Minor() || is.Minor() == was.Minor()+1) {
		return nil //nolint:nilerr // the configuration was checked before
	}
	return hint.Errorf(fmt.Sprintf("restore it with a bundle of Kubernetes %d.%d", was.Major(), was.Minor()),
		"the backup was written by Kubernetes %s, and %s may not read it: only the same minor version and the next one do", terminal.Word(written), by)
}

func sameCluster(m *backup.Manifest, s *session.Session) error {
	if name := s.Config.Kubernetes.Kubernetes.ClusterName; m.Cluster != name {
		return hint.Errorf("name the folder of that cluster with -p", "the backup belongs to the cluster %s, and the configuration to %s", terminal.Word(m.Cluster), name)
	}
	return nil
}

// localTime formats the time of a backup in the local time zone.
func localTime(m *backup.Manifest) string { return m.Time.Local().Format(time.RFC1123) }

// fits returns an error if the objects in the backup would not work with the configuration.
func fits(m *backup.Manifest, s *session.Session, dir string) error {
	if err := sameCluster(m, s); err != nil {
		return err
	}
	if err := readable(m.Kubernetes, s.Config.Kubernetes.Kubernetes.Version); err != nil {
		return err
	}
	was, err := config.Load(filepath.Join(dir, "config"))
	if err != nil {
		return fmt.Errorf("the configuration in the backup: %w", err)
	}
	for _, c := range []struct{ field, was, is string }{
		{"service-cluster-ip-range", was.Kubernetes.Kubernetes.ServiceClusterIPRange, s.Config.Kubernetes.Kubernetes.ServiceClusterIPRange},
		{"pod-cidr", was.Kubernetes.Kubernetes.PodCIDR, s.Config.Kubernetes.Kubernetes.PodCIDR},
	} {
		if c.was != c.is {
			return hint.Errorf("write "+c.field+": "+c.was+" into "+config.KubernetesFile,
				"the objects in the backup have addresses of %s %s, and the configuration says %s", c.field, c.was, cmp.Or(c.is, "nothing"))
		}
	}
	return nil
}

func announced(m *backup.Manifest, s *session.Session) string {
	var onto []string
	for _, n := range s.Spec.Nodes {
		onto = append(onto, n.Hostname+" ("+n.HostIP+")")
	}
	return fmt.Sprintf("The cluster %s of the machines %[3]s is restored\nfrom its backup of %[2]s, on %[4]s.\nChanges since then are lost. Jobs that ran then begin again.",
		terminal.Word(m.Cluster), localTime(m), names(m.Machines), strings.Join(onto, ", "))
}
