// Package support contains the command "paictl support-bundle".
// In: flags, a configuration folder, a kubeconfig. Out: one file with the data that pkg/diagnose/support collects.
package support

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmd/version"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/support"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// BundleOptions are the options of "paictl support-bundle".
type BundleOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Kube    kube.Options
	File    string
	Since   time.Duration
	Jobs    []string
	MaxSize string
	Without []string
	DryRun  bool

	command string
	jobs    []support.Job
	maxSize int64
}

// NewCmdSupportBundle returns "paictl support-bundle".
func NewCmdSupportBundle(f *cmdutil.Factory) *cobra.Command {
	opts := &BundleOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect data to diagnose a cluster's problems, without its secrets",
		Long: `Collects configuration, state, events and logs of a cluster in one archive (tar.gz, mode 0600) with an
index page: unpack it and open index.html. The command only reads; it changes nothing. It also works if
machines or the API are down: data that can't be collected is not an error; the index says what is
missing and why.

Secrets are removed: those of the configuration and of the cluster's Secrets wherever they occur, and
everything that looks like a password, a key or a token. Users' logs and environments are left out,
except for jobs named with --job. Look through the files before you send them; docs/support-bundle.md
says what they contain.`,
		Example: `  paictl support-bundle -p ./cluster
  paictl support-bundle -p ./cluster --since 2h --job ann/train-7 -o /tmp/trouble.tar.gz
  paictl support-bundle -p ./cluster --without machines,logs
  paictl support-bundle -p ./cluster -o - | ssh desk 'cat >bundle.tar.gz'
  paictl support-bundle -p ./cluster --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.command = session.Typed(cmd, args)
			if !cmd.Flags().Changed("parallel") {
				opts.Flags.Parallel = parallel
			}
			if err := opts.check(); err != nil {
				return err
			}
			return bundleRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	fl := cmd.Flags()
	fl.Lookup("parallel").DefValue = fmt.Sprint(parallel)
	fl.Lookup("parallel").Usage = "how many machines to ask, and logs to read, at the same time"
	fl.StringVarP(&opts.File, "output", "o", "", "file or folder to write to, or - for stdout (default: pai-support-CLUSTER-TIME.tar.gz in the current folder)")
	fl.DurationVar(&opts.Since, "since", 24*time.Hour, "how far back logs and journals go; 0 includes everything")
	fl.StringArrayVar(&opts.Jobs, "job", nil, "a job USER/NAME whose logs and environment are included; can be repeated")
	fl.StringVar(&opts.MaxSize, "max-size", "500M", "maximum size of the archive; files that don't fit are left out, logs first")
	fl.StringSliceVar(&opts.Without, "without", nil, "parts to leave out: "+strings.Join(support.Parts(), ","))
	_ = cmd.RegisterFlagCompletionFunc("without", cobra.FixedCompletions(support.Parts(), cobra.ShellCompDirectiveNoFileComp))
	fl.BoolVar(&opts.DryRun, "dry-run", false, "list the data that would be collected, without requests and without a file")
	return cmd
}

// parallel limits the number of machines that are queried at the same time, because their outputs are large.
const parallel = 8

// check returns an error if a flag is not valid. It also parses the values of --job and --max-size.
func (opts *BundleOptions) check() error {
	if opts.Since < 0 {
		return cmdutil.Usagef("--since %s: give how far back logs go, such as 2h", opts.Since)
	}
	for _, name := range opts.Without {
		if !slices.Contains(support.Parts(), name) {
			return cmdutil.Usagef("--without %s: the parts are %s", name, strings.Join(support.Parts(), ", "))
		}
	}
	for _, text := range opts.Jobs {
		user, name, ok := strings.Cut(text, "/")
		if !ok || user == "" || name == "" {
			return cmdutil.Usagef("--job %s: write USER/NAME, as in: --job ann/train-7", text)
		}
		opts.jobs = append(opts.jobs, support.Job{User: user, Name: name})
	}
	size, err := resource.ParseQuantity(opts.MaxSize)
	if err != nil || size.Value() < minSize {
		return cmdutil.Usagef("--max-size %s: give a size of at least 10M, such as 200M or 1G", opts.MaxSize)
	}
	opts.maxSize = size.Value()
	return nil
}

// minSize is the size in bytes that an archive needs at least for its index and its most important files.
const minSize = 10_000_000

func bundleRun(ctx context.Context, opts *BundleOptions) (err error) {
	src, done := opts.sources(ctx)
	defer done()
	now := time.Now()
	o := support.Options{
		Sources: src, Name: "pai-support-" + clusterName(src) + now.UTC().Format("20060102T150405Z"), Version: version.Line(), Command: opts.command,
		Since: opts.Since, Jobs: opts.jobs, MaxSize: opts.maxSize, Without: opts.Without, Clock: time.Now,
		Progress: func(part, message string) { opts.Factory.IO.Say("%-28s  %s", part, message) },
		Limits:   support.Limits{Parallel: opts.Flags.Parallel},
	}
	if opts.DryRun {
		t := cmdutil.Table{Header: []string{"FILE", "WHAT"}}
		for _, e := range support.Plan(&o) {
			t.Rows = append(t.Rows, []string{e.Name, e.What})
		}
		return (&cmdutil.Output{}).Write(opts.Factory.IO.Out, nil, t)
	}
	if opts.File == "-" {
		if opts.Factory.IO.IsOutTTY() {
			return cmdutil.Usagef("the archive can't be written to a terminal: redirect it to a file or a pipe, or name a file with -o")
		}
		return opts.stream(ctx, "stdout", opts.Factory.IO.Out, o)
	}
	if info, err := os.Stat(opts.File); err == nil && !info.IsDir() && !info.Mode().IsRegular() { // a pipe or /dev/stdout, which can't be replaced by renaming
		f, err := os.OpenFile(opts.File, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		defer func() { _ = f.Close() }() // all was written, or the error is known
		return opts.stream(ctx, opts.File, f, o)
	}
	return opts.writeFile(ctx, o)
}

// stream writes the archive to a target that isn't a regular file, such as stdout.
func (opts *BundleOptions) stream(ctx context.Context, name string, w io.Writer, o support.Options) error {
	o.SpoolDir = os.TempDir()
	ix, err := support.Write(ctx, w, o)
	if err == nil {
		opts.tell(name, ix)
	}
	return err
}

// writeFile writes the archive into a temporary file beside its target, and renames it when the archive is complete.
func (opts *BundleOptions) writeFile(ctx context.Context, o support.Options) error {
	file := opts.File
	if info, err := os.Stat(file); file == "" || err == nil && info.IsDir() {
		file = filepath.Join(file, o.Name+".tar.gz")
	}
	o.SpoolDir = filepath.Dir(file)
	f, err := renameio.NewPendingFile(file, renameio.WithTempDir(o.SpoolDir), renameio.WithStaticPermissions(0o600))
	if errors.Is(err, fs.ErrNotExist) {
		return hint.Errorf("make the folder first, or name another place with -o", "there is no folder %s", o.SpoolDir)
	}
	if err != nil {
		return hint.Wrap(fmt.Errorf("write %s: %w", file, err), "name another place with -o")
	}
	defer func() { _ = f.Cleanup() }() // after the rename, Cleanup does nothing
	ix, err := support.Write(ctx, f, o)
	if err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	opts.tell(file, ix)
	_, err = fmt.Fprintln(opts.Factory.IO.Out, file)
	return err
}

// tell prints what the archive contains, and whether data is missing.
func (opts *BundleOptions) tell(file string, ix *support.Index) {
	streams := opts.Factory.IO
	streams.Say("%s: %s, %s unpacked, %s", file, plural.Of(len(ix.Files), "file"), support.Size(ix.Total()), plural.Of(ix.Redactions(), "secret")+" removed")
	if n := len(ix.Missing); n > 0 {
		streams.Say("%s could not be collected, or only in part: index.html says why", plural.Of(n, "thing"))
	}
	streams.Say("Look through it before you send it: no program recognises every secret.")
}

func clusterName(src support.Sources) string {
	if src.Config == nil || src.Config.Kubernetes.Kubernetes.ClusterName == "" {
		return ""
	}
	return src.Config.Kubernetes.Kubernetes.ClusterName + "-"
}

// sources opens all sources of data. If a source can't be opened, the archive contains a note about that.
func (opts *BundleOptions) sources(ctx context.Context) (src support.Sources, done func()) {
	done = func() {}
	src.Folder = opts.Flags.Dir
	src.Config, src.FolderErr = config.Load(opts.Flags.Dir)
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		src.MachinesErr = hint.Wrap(fmt.Errorf("could not ask the machines: %w", err), hint.Of(err))
	} else {
		src.Spec, src.Run, done = s.Spec, s.Options, func() { _ = s.Close() } // errors of closing don't affect the archive
	}
	src.Cluster, src.ClusterErr = opts.openAPI(ctx, &src)
	var platform *services.Platform
	if src.ClusterErr == nil {
		platform, err = services.Open(src.Cluster, src.Folder, opts.Factory.Log)
		src.Services = func(ctx context.Context) ([]services.Status, error) {
			if err != nil {
				return nil, err
			}
			return platform.Status(ctx)
		}
	}
	src.Reports = opts.reports(src, platform)
	return src, done
}

// openAPI connects to the API server that the flags select, or to the API server of the machines in the folder. It doesn't use the current
// kubeconfig if that leads to another cluster, because the data of that cluster would mislead readers of the archive.
func (opts *BundleOptions) openAPI(ctx context.Context, src *support.Sources) (*kube.Cluster, error) {
	k, err := kube.Open(opts.Kube)
	if opts.Kube.Kubeconfig != "" || opts.Kube.Context != "" || src.Spec == nil || err == nil && session.LeadsTo(k.Server, src.Spec) {
		return k, err
	}
	if err == nil {
		err = hint.Errorf("if it is the same cluster, name it with --kubeconfig or --context", "the current kubeconfig leads to %s, which is not a master of the configuration in %s", k.Server, src.Folder)
	}
	if opts.DryRun || slices.Contains(opts.Without, support.PartMachines) {
		return nil, err
	}
	k, fromMaster := session.MasterKubeconfig(ctx, src.Spec, src.Run)
	if fromMaster != nil {
		return nil, hint.Wrap(fmt.Errorf("%w; and no master provides one: %w", err, fromMaster), hint.Of(err))
	}
	return k, nil
}
