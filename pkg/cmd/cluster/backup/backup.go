// Package backup contains the commands "paictl cluster backup ...".
// In: flags, a configuration folder, archives. Out: an archive of the cluster, and the contents of archives.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	jobapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/version"
)

// Options are the options of "paictl cluster backup".
type Options struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	Seal    sealFlags
	Place   placeFlags
	File    string
	To      string
}

// NewCmdBackup returns "paictl cluster backup".
func NewCmdBackup(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Save a cluster in one encrypted file",
		Long: `Saves in one file the data that can't be restored in any other way after all machines of the control plane are lost:
etcd's database with all objects of Kubernetes and all jobs, the keys of the certificate authorities and of
service accounts, the key of secrets at rest, the configuration folder with its secrets, and the history of
jobs. The cluster isn't changed and keeps working during the backup; the copies of etcd and of the history are consistent snapshots.

The file is encrypted with age: to public keys (--recipient), or with a passphrase. paictl prompts for one
if you name neither. Keep the private key or passphrase elsewhere: without it no one can restore the cluster.
The file holds no images, no data of users' storages, and no logs of running tasks. It gets its name when it is complete.` + places,
		Example: `  paictl cluster backup -p ./cluster
  paictl cluster backup -p ./cluster --to /mnt/backups --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
  paictl cluster backup -p ./cluster --file today.paictl-backup --passphrase-file ./passphrase
  paictl cluster backup -p ./cluster --to ssh://backup@nas/srv/backups --recipients-file backup.pub
  paictl cluster backup -p ./cluster --to s3://backups/pai --s3-endpoint https://s3.example.org --recipients-file backup.pub
  paictl cluster backup list --to /mnt/backups
  paictl cluster backup verify today.paictl-backup --passphrase-file ./passphrase
  paictl cluster backup prune --to /mnt/backups --keep-daily 7 --keep-weekly 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			return backupRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Seal.add(cmd)
	opts.Place.add(cmd, &opts.Flags)
	cmd.Flags().StringVar(&opts.File, "file", "", "write this `FILE` (default CLUSTER.ID-TIME.paictl-backup in --to)")
	cmd.Flags().StringVar(&opts.To, "to", ".", "write into this `FOLDER`")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	cmd.AddCommand(NewCmdList(f), NewCmdVerify(f), NewCmdPrune(f), NewCmdExtract(f))
	return cmd
}

func (opts *Options) check() error {
	if opts.File != "" && opts.To != "." {
		return cmdutil.Usagef("--file and --to exclude each other")
	}
	return opts.Seal.check()
}

// Made is the output of "backup -o json".
type Made struct {
	File      string `json:"file"`
	Size      int64  `json:"size"`
	Encrypted string `json:"encrypted"`
	*backup.Manifest
}

func backupRun(ctx context.Context, opts *Options) (err error) {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	now, name := time.Now().UTC().Truncate(time.Second), s.Config.Kubernetes.Kubernetes.ClusterName
	place, file := opts.To, ""
	if opts.File != "" {
		if place, file, err = target.Split(opts.File); err != nil {
			return err
		}
	}
	to, err := opts.Place.open(opts.Factory, place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := to.List(ctx, name); err != nil { // check that the place can be reached before the cluster is queried
		return err
	}
	api, silent := session.MasterKubeconfig(ctx, s.Spec, s.Options)
	head := backup.Head{Paictl: version.Version, Cluster: name, Time: now}
	var notes map[string]string
	if silent == nil {
		head.ID, head.UID, notes, silent = identify(ctx, api)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	made, without, err := opts.write(ctx, s, to, file, head, api, silent)
	if err != nil {
		return err
	}
	if silent == nil {
		silent = note(ctx, api, now, notes, without)
	}
	if silent != nil && ctx.Err() == nil {
		fmt.Fprintf(opts.Factory.IO.Err, "! the backup couldn't be recorded in the cluster, so paictl cluster upgrade will ask for another: %v\n", silent)
	}
	return opts.told(made)
}

// write writes the archive to file. If file is empty, it writes a new file whose name paictl chooses. silent is the reason why the API of the
// cluster doesn't respond, or nil. The result without is the reason why the archive doesn't contain the history of jobs, or nil.
func (opts *Options) write(ctx context.Context, s *session.Session, to target.Target, file string, head backup.Head, api *kube.Cluster, silent error) (made Made, without, err error) {
	name, nameWithout := file, file
	if file == "" {
		of := backup.Of(head.Cluster, head.ID)
		name, nameWithout = backup.Name(of, head.Time), backup.NameWithoutHistory(of, head.Time)
	}
	var seal *backup.Seal
	named, err := target.WriteNamed(ctx, to, name, nameWithout, silent, func(ctx context.Context, out io.Writer, without error) error {
		if seal == nil { // prompt for a passphrase only once
			sealed, err := opts.Seal.seal(opts.Factory)
			if err != nil {
				return err
			}
			seal, made.Encrypted = &sealed, sealed.Sealed()
		}
		w, err := backup.NewWriter(out, *seal, head)
		if err != nil {
			return err
		}
		if err := opts.save(ctx, s, w, api, without); err != nil {
			return err
		}
		made.Manifest, err = w.Close()
		return err
	})
	made.File, made.Size = to.Path(named.Name), named.Size
	return made, named.Without, err
}

// identify returns the ID of the cluster, its UID, and its notes about backups. A restored cluster gets a new ID but keeps the UID.
func identify(ctx context.Context, api *kube.Cluster) (id, uid string, notes map[string]string, err error) {
	uid, notes, err = kube.Identity(ctx, api.Client, backup.NotesName)
	return backup.ID(uid, notes[backup.NoteRestored]), uid, notes, err
}

// save writes all parts of the backup. If the history of jobs can't be saved and this is already known, without is the reason.
func (opts *Options) save(ctx context.Context, s *session.Session, w *backup.Writer, api *kube.Cluster, without error) error {
	opts.say("saving the configuration, keys and etcd of " + s.Config.Kubernetes.Kubernetes.ClusterName)
	if err := addFolder(w, s.Config.Dir); err != nil {
		return err
	}
	if err := cluster.BackUp(ctx, s.Spec, s.Options, w); err != nil {
		return err
	}
	if without != nil {
		w.LacksHistory(without)
		return nil
	}
	opts.say("saving the history of jobs")
	return addJobs(ctx, api, w)
}

// say prints a progress message, unless the output is for programs.
func (opts *Options) say(what string) {
	if opts.Output.Is("text") {
		fmt.Fprintln(opts.Factory.IO.Err, what)
	}
}

func (opts *Options) told(m Made) error {
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, m, cmdutil.Table{})
	}
	w := opts.Factory.IO.Err
	for _, lacks := range m.Missing {
		fmt.Fprintf(w, "! not in it: %s: %s\n", lacks.What, lacks.Why)
	}
	fmt.Fprintf(w, "%s: %s in %s, %s\n", m.File, humanize.IBytes(uint64(m.Size)), plural.Of(len(m.Parts), "part"), described(m.Encrypted))
	fmt.Fprintf(w, "check that it can be opened: paictl cluster backup verify %s%s\n", hint.Quote(m.File), opts.opened()+opts.Place.again())
	return nil
}

// opened returns the flags that "verify" needs to decrypt the new archive.
func (opts *Options) opened() string {
	switch {
	case opts.Seal.PassphraseFile != "":
		return " --passphrase-file " + hint.Quote(opts.Seal.PassphraseFile)
	case len(opts.Seal.Recipients)+len(opts.Seal.RecipientFiles) > 0:
		return " --identity FILE"
	}
	return ""
}

func described(encrypted string) string {
	switch encrypted {
	case "recipients":
		return "encrypted to its recipients"
	case "passphrase":
		return "encrypted with the passphrase"
	}
	return "NOT ENCRYPTED: keep it as you keep the root passwords of the machines"
}

// addFolder adds the configuration files to the backup.
func addFolder(w *backup.Writer, dir string) error {
	for _, name := range config.Files() {
		err := addFile(w, backup.FolderConfig+name, filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func addFile(w *backup.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	return w.Add(name, info.Size(), f)
}

// note records the time of the last backup in the cluster, and the time of the last backup with the history of jobs.
func note(ctx context.Context, api *kube.Cluster, at time.Time, before map[string]string, without error) error {
	patch, err := backup.Notes(before, at, without)
	if err != nil {
		return err
	}
	_, err = api.Client.CoreV1().ConfigMaps(cluster.NotesNamespace).Patch(ctx, cluster.NotesName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// addJobs adds the history of jobs to the backup. After an error, the cluster can still be saved without the history. The name of such a backup
// shows that the history is missing.
func addJobs(ctx context.Context, api *kube.Cluster, w *backup.Writer) error {
	jobs, err := job.New(api)
	if err != nil {
		return &backup.NoHistoryError{Err: err}
	}
	data, size, err := jobs.History.Archive(ctx)
	switch {
	case err == nil:
		defer data.Close()
		return w.Add(backup.PartJobs, size, data)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, job.ErrElsewhere):
		w.LacksHistory(fmt.Errorf("%w: %w", backup.ErrHistoryElsewhere, err))
		return nil
	}
	if _, missing := api.Client.CoreV1().Services(kube.SystemNamespace).Get(ctx, jobapi.Service, metav1.GetOptions{}); apierrors.IsNotFound(missing) {
		err = fmt.Errorf("%w: %w", backup.ErrNoController, err)
	}
	return &backup.NoHistoryError{Err: err}
}
