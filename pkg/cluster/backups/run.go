// Package backups implements the program cmd/pai-backup, which makes backups from inside the cluster. "paictl cluster backup" makes them from
// outside.
// In: settings, the files of a control plane machine, its etcd, the API server, the job controller. Out: an archive in its target, encrypted to
// keys that the cluster doesn't have; a note of the time. The program also deletes old archives.
package backups

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/version"
)

type options struct {
	config, credentials string
	root                string // prefix for paths of the machine
	etcd, etcdPort      string
	jobs, token         string // the job controller's URL, and the file with its token
	kubeconfig          string
}

// Run runs the program pai-backup with the arguments args. It writes its log to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	fs := flag.NewFlagSet("pai-backup", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.config, "config", "/etc/pai-backup/config.json", "file with the settings, as JSON")
	fs.StringVar(&o.credentials, "credentials", "/etc/pai-backup-credentials", "folder with the credentials of the place where backups go")
	fs.StringVar(&o.root, "root", "/host", "where the machine's files are mounted")
	fs.StringVar(&o.etcd, "etcd-host", "127.0.0.1", "address of the machine's etcd")
	fs.StringVar(&o.etcdPort, "etcd-port", "2379", "its port")
	fs.StringVar(&o.jobs, "jobs", "", "URL of the job controller; if empty, the history of jobs isn't saved")
	fs.StringVar(&o.token, "token-file", "", "file with the token for the job controller")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "of the API server; if empty, that of the pod's cluster")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	c, err := readConfig(o.config)
	if err != nil {
		return err
	}
	api, err := o.api()
	if err != nil {
		return err
	}
	return (&saver{options: o, config: c, api: api, log: slog.New(slog.NewTextHandler(out, nil)), now: time.Now}).save(ctx)
}

func (o *options) api() (kubernetes.Interface, error) {
	if o.kubeconfig != "" {
		c, err := kube.Open(kube.Options{Kubeconfig: o.kubeconfig})
		if err != nil {
			return nil, err
		}
		return c.Client, nil
	}
	c, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	c.UserAgent = "pai-backup"
	return kubernetes.NewForConfig(c)
}

type saver struct {
	options
	config *Config
	api    kubernetes.Interface
	log    *slog.Logger
	now    func() time.Time
}

func (s *saver) save(ctx context.Context) (err error) {
	recipients, err := backup.Recipients(s.config.Recipients, nil)
	if err != nil {
		return err
	}
	pushed, err := store.New(s.api).Pull(ctx)
	if err != nil {
		return err
	}
	cluster, err := config.Parse("", pushed.Files)
	if err != nil {
		return fmt.Errorf("the cluster's configuration, revision %d: %w", pushed.Revision.Number, err)
	}
	own, err := os.MkdirTemp("", "pai-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	to, err := s.config.open(s.credentials, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	head := backup.Head{Paictl: version.Version, Cluster: cluster.Kubernetes.Kubernetes.ClusterName, Time: s.now().UTC().Truncate(time.Second)}
	uid, notes, err := kube.Identity(ctx, s.api, backup.NotesName)
	if err != nil {
		return err
	}
	head.ID, head.UID = backup.ID(uid, notes[backup.NoteRestored]), uid
	var m *backup.Manifest
	var without error
	if s.jobs == "" {
		without = backup.ErrNoController
	}
	of := backup.Of(head.Cluster, head.ID)
	made, err := target.WriteNamed(ctx, to, backup.Name(of, head.Time), backup.NameWithoutHistory(of, head.Time), without, func(ctx context.Context, out io.Writer, without error) error {
		w, err := backup.NewWriter(out, backup.Seal{Recipients: recipients}, head)
		if err != nil {
			return err
		}
		if err := s.parts(ctx, w, pushed, s.masters(cluster), without); err != nil {
			return err
		}
		release, err := s.api.Discovery().ServerVersion()
		if err != nil {
			return fmt.Errorf("ask the API server for its version: %w", err)
		}
		w.Describe(release.GitVersion, machines(cluster))
		m, err = w.Close()
		return err
	})
	if err != nil {
		return err
	}
	for _, lacks := range m.Missing {
		s.log.WarnContext(ctx, "the backup hasn't all of the cluster", "missing", lacks.What, "why", lacks.Why)
	}
	s.log.InfoContext(ctx, "saved", "backup", to.Path(made.Name), "bytes", made.Size, "parts", len(m.Parts))
	s.after(ctx, to, head, notes, made.Without)
	return nil
}

// after runs the steps whose failure doesn't affect the new backup. The argument notes contains the cluster's notes before the backup. The argument
// without is the reason why the job history is missing, or nil.
func (s *saver) after(ctx context.Context, to target.Target, made backup.Head, notes map[string]string, without error) {
	warn := func(what string, err error) {
		s.log.WarnContext(ctx, "the backup is made, but", "what", what, "error", err, "remedy", hint.Of(err))
	}
	if err := s.note(ctx, made.Time, notes, without); err != nil {
		warn("the cluster's record of the backup couldn't be written", err)
	}
	if !s.config.Prune {
		return
	}
	files, err := to.List(ctx, backup.Of(made.Cluster, made.ID)) // backups of another cluster with the same name aren't deleted
	if err != nil {
		warn("old backups couldn't be listed", err)
		return
	}
	for _, f := range s.config.keep().Expired(files) {
		if err := to.Delete(ctx, path.Base(f.Path)); err != nil {
			warn("an old backup couldn't be deleted", err)
			return // then deleting others would fail, too
		}
		s.log.InfoContext(ctx, "deleted", "backup", f.Path)
	}
}

// note records the time of the last backup, and the time of the last backup with the job history, in the cluster.
func (s *saver) note(ctx context.Context, at time.Time, before map[string]string, without error) error {
	patch, err := backup.Notes(before, at, without)
	if err != nil {
		return err
	}
	_, err = s.api.CoreV1().ConfigMaps(backup.NotesNamespace).Patch(ctx, backup.NotesName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// masters returns the addresses of the machines with etcd, beginning with the machine of this program.
func (s *saver) masters(c *config.Cluster) []string {
	out := []string{s.etcd}
	for _, m := range c.Layout.MachineList {
		if m.HasRole(layout.RoleMaster) && m.HostIP != s.etcd {
			out = append(out, m.HostIP)
		}
	}
	return out
}

func machines(c *config.Cluster) []backup.Machine {
	var out []backup.Machine
	for _, m := range c.Layout.MachineList {
		of := backup.Machine{Name: m.Hostname, IP: m.HostIP}
		of.Roles = append(of.Roles, m.Roles...)
		out = append(out, of)
	}
	return out
}
