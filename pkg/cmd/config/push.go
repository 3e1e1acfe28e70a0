package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/config/store/source"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// PushOptions are the options of "paictl config push".
type PushOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
	Dir     string
	From    string
	Only    []string
	Message string
	Force   bool
	Rename  bool
	Yes     bool
	DryRun  bool
}

// pushed is the output of "push -o json".
type pushed struct {
	Context string `json:"context"`
	Server  string `json:"server"`
	DryRun  bool   `json:"dryRun,omitempty"`
	// Revision is the new revision. If nothing was pushed, it is the current revision.
	Revision *store.Revision    `json:"revision,omitempty"`
	Changes  []store.FileChange `json:"changes"`
}

// NewCmdPush returns "paictl config push".
func NewCmdPush(f *cmdutil.Factory) *cobra.Command {
	opts := &PushOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Store the configuration in the cluster",
		Long: `Checks the four files and stores them in the cluster: as ConfigMap pai-configuration, with
every secret replaced by a reference, and as Secret pai-credentials. The services are started from this
copy.

The push is refused if the cluster has another cluster-id, or if someone else has pushed since the
folder was last pulled or pushed. It shows what differs. The first push to a cluster asks for
confirmation.`,
		Example: `  paictl config push -p ./cluster -m "two more workers"
  paictl config push -p ./cluster --only services-configuration.yaml
  paictl config push -p ./cluster --dry-run
  paictl config push --from 'git::https://git.example.org/ops/clusters.git//berlin?ref=main'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(cmd); err != nil {
				return err
			}
			return pushRun(cmd.Context(), opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	fl := cmd.Flags()
	addFromFlag(cmd, &opts.From)
	fl.StringSliceVar(&opts.Only, "only", nil, "push only these files, separated by commas; the others stay as the cluster has them")
	fl.StringVarP(&opts.Message, "message", "m", "", "reason, recorded in the history")
	fl.BoolVar(&opts.Force, "force", false, "overwrite changes that others have pushed since")
	fl.BoolVar(&opts.Rename, "rename-cluster", false, "let the push change the cluster-id")
	fl.BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "check, show what differs, and write nothing")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(config.Files(), cobra.ShellCompDirectiveNoFileComp))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// addFromFlag adds --from, which selects a source other than a configuration folder.
func addFromFlag(cmd *cobra.Command, from *string) {
	cmd.Flags().StringVar(from, "from", "", "git::URL//path?ref=REF, or a folder, instead of -p")
	_ = cmd.MarkFlagDirname("from")
}

// chooseFolder returns the folder or source that -p or --from selects.
func chooseFolder(cmd *cobra.Command, dir, from string) (string, error) {
	switch {
	case from == "":
		return dir, nil
	case cmd.Flags().Changed("config-path"):
		return "", cmdutil.Usagef("give -p or --from, not both (see %s --help)", cmd.CommandPath())
	}
	return from, nil
}

// complete checks the flags, and completes their values.
func (o *PushOptions) complete(cmd *cobra.Command) error {
	for i, name := range o.Only {
		if o.Only[i] = filepath.Base(name); !slices.Contains(config.Files(), o.Only[i]) {
			return cmdutil.Usagef("%s is not one of the four files: %s", name, strings.Join(config.Files(), ", "))
		}
	}
	if len(o.Message) > store.MaxMessage {
		return cmdutil.Usagef("the message is longer than %d bytes (see %s --help)", store.MaxMessage, cmd.CommandPath())
	}
	var err error
	o.Dir, err = chooseFolder(cmd, o.Dir, o.From)
	return err
}

func pushRun(ctx context.Context, opts *PushOptions) error {
	folder, err := source.Open(ctx, opts.Dir, source.Options{Ask: opts.Factory.IO.CanPrompt()})
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // it is a copy
	c, err := candidate(opts, folder)
	if err != nil {
		return err
	}
	s, err := openStored(opts.Kube)
	if err != nil {
		return err
	}
	d, err := s.Draft(ctx, c)
	if err != nil {
		return s.cluster.Explain(err)
	}
	if err := d.Warnings.Write(opts.Factory.IO.Err); err != nil {
		return err
	}
	if opts.DryRun {
		return showDraft(opts.Factory.IO, s, &opts.Output, d)
	}
	r, err := pushDraft(ctx, opts, s, d, folder)
	if err != nil {
		return s.cluster.Explain(err)
	}
	s.publish(ctx, opts.Factory, "paictl config push")
	noteBase(opts, c, folder, d, r)
	return tell(opts.Factory.IO, s, &opts.Output, d, r)
}

// candidate reads the files that will be pushed.
func candidate(opts *PushOptions, folder *source.Folder) (store.Candidate, error) {
	c := store.Candidate{Dir: folder.Dir, Source: folder.Source, Force: opts.Force, Rename: opts.Rename}
	var err error
	if folder.Source == "" {
		if c.Base, err = store.ReadBase(folder.Dir); err != nil {
			return c, err
		}
	}
	if len(opts.Only) == 0 {
		c.Files, err = config.ReadFiles(folder.Dir)
		return c, err
	}
	c.Files = map[string][]byte{}
	for _, name := range opts.Only {
		if c.Files[name], err = os.ReadFile(filepath.Join(folder.Dir, name)); errors.Is(err, fs.ErrNotExist) {
			return c, hint.Errorf("check -p and --only", "there is no %s", filepath.Join(folder.Dir, name))
		} else if err != nil {
			return c, fmt.Errorf("read the configuration: %w", err)
		}
	}
	return c, nil
}

// pushDraft shows the differences, asks for confirmation if that is necessary, and pushes the configuration.
func pushDraft(ctx context.Context, opts *PushOptions, s *stored, d *store.Draft, folder *source.Folder) (store.Revision, error) {
	if d.First() {
		if err := introduce(ctx, opts, s, d); err != nil {
			return store.Revision{}, err
		}
	} else if err := writeChanges(opts.Factory.IO.Err, d.Changes); err != nil {
		return store.Revision{}, err
	}
	e := store.Entry{By: prompt.Operator(), Message: opts.Message}
	if e.Message == "" && folder.Source != "" {
		e.Message = "from " + folder.String()
	}
	return s.Push(ctx, d, e)
}

// introduce describes a cluster that will get its first configuration, and asks whether it is the right cluster. The cluster has no stored name
// yet that could be compared with the configuration.
func introduce(ctx context.Context, opts *PushOptions, s *stored, d *store.Draft) error {
	if opts.Yes {
		return nil
	}
	nodes, version, err := describeCluster(ctx, s.cluster)
	if err != nil {
		return err
	}
	fmt.Fprintf(opts.Factory.IO.Err, "This cluster has no configuration of paictl yet:\n  context     %s\n  server      %s\n  Kubernetes  %s\n  nodes       %s\n",
		s.cluster.Context, s.cluster.Server, version, nodes)
	id := d.Cluster.Services.Cluster.Common.ClusterID
	return prompt.Confirm(opts.Factory.IO, false, "the first push to a cluster", fmt.Sprintf("Make it the cluster %q?", id))
}

// describeCluster returns the number of nodes with the names of the first nodes, and the Kubernetes version.
func describeCluster(ctx context.Context, c *kube.Cluster) (nodes, version string, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		const shown = 5
		list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: shown})
		if err != nil {
			return fmt.Errorf("list the nodes: %w", err)
		}
		count := len(list.Items)
		if list.RemainingItemCount != nil {
			count += int(*list.RemainingItemCount)
		}
		var names []string
		for i := range list.Items[:min(shown, len(list.Items))] {
			names = append(names, list.Items[i].Name)
		}
		if count > len(names) {
			names = append(names, "...")
		}
		nodes = fmt.Sprintf("%d (%s)", count, strings.Join(names, ", "))
		if count == 0 {
			nodes = "none"
		}
		return nil
	})
	g.Go(func() error {
		v, err := c.Client.Discovery().ServerVersion()
		if err != nil {
			return fmt.Errorf("ask for the version of Kubernetes: %w", err)
		}
		version = v.GitVersion
		return nil
	})
	err = g.Wait()
	return nodes, version, err
}

// noteBase writes the number of the new revision into the folder, because the folder is now equal to this revision. It writes nothing after a
// forced push of some files, because the other files in the folder may be older than those in the cluster.
func noteBase(opts *PushOptions, c store.Candidate, folder *source.Folder, d *store.Draft, r store.Revision) {
	current := d.First() || c.Base != nil && *c.Base == store.BaseOf(*d.Head)
	if folder.Source != "" || len(opts.Only) > 0 && !current {
		return
	}
	if err := store.BaseOf(r).Write(folder.Dir); err != nil {
		fmt.Fprintf(opts.Factory.IO.Err, "warning: %v; the next push from here needs --force\n", err)
	}
}

// showDraft prints the changes that a push would make.
func showDraft(io *iostreams.IOStreams, s *stored, output *cmdutil.Output, d *store.Draft) error {
	if !output.Is("text") {
		return output.Write(io.Out, pushed{Context: s.cluster.Context, Server: s.cluster.Server, DryRun: true, Revision: d.Head,
			Changes: append([]store.FileChange{}, d.Changes...)}, cmdutil.Table{})
	}
	if len(d.Changes) == 0 {
		fmt.Fprintf(io.Err, "nothing to push: revision %d has the same files\n", d.Head.Number)
	}
	return writeChanges(io.Out, d.Changes)
}

// tell prints the result of a push.
func tell(io *iostreams.IOStreams, s *stored, output *cmdutil.Output, d *store.Draft, r store.Revision) error {
	if !output.Is("text") {
		return output.Write(io.Out, pushed{Context: s.cluster.Context, Server: s.cluster.Server, Revision: &r,
			Changes: append([]store.FileChange{}, d.Changes...)}, cmdutil.Table{})
	}
	if len(d.Changes) == 0 {
		fmt.Fprintf(io.Err, "nothing to push: revision %d of cluster %s has the same files\n", r.Number, r.ClusterID)
		return nil
	}
	fmt.Fprintf(io.Err, "pushed revision %d of cluster %s to %s (%s): %s\n", r.Number, r.ClusterID, s.cluster.Context, s.cluster.Server, changedFiles(d.Changes))
	return nil
}
