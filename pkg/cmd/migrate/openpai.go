package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/openpai"
	"github.com/openpai/paictl/pkg/openpai/history"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// OpenPAIOptions are the options of "paictl migrate openpai".
type OpenPAIOptions struct {
	Factory                       *cmdutil.Factory
	From, To                      kube.Options
	UserNamespace, GroupNamespace string
	// HistoryFrom is the address of OpenPAI's database, or a file with the address. If it is "", no jobs are imported.
	HistoryFrom string
	Means       openpai.Options
	DryRun      bool
	Output      cmdutil.Output
}

// NewCmdOpenPAI returns "paictl migrate openpai".
func NewCmdOpenPAI(f *cmdutil.Factory) *cobra.Command {
	opts := &OpenPAIOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "openpai [--from-kubeconfig FILE] [--history-from ADDRESS|FILE]",
		Short: "Import people, groups and the history of jobs from a cluster of OpenPAI",
		Long: `Reads users and groups from the Secrets of a cluster of OpenPAI, which it doesn't change, and adds those that this cluster doesn't
have yet: with groups, grants, e-mail addresses, public keys, and the data that clients stored with them. It adds people to a group that
this cluster already has only if that group doesn't grant more than the group of that name did in OpenPAI.

Passwords are imported only with --passwords, and then stay valid: they are hashed in a better way at a person's first sign-in. Don't
use it if people signed in to OpenPAI with OIDC: OpenPAI stored their object id as the password, which others know.

With --history-from, finished jobs in OpenPAI's database are added to the history of jobs: with attempts, tasks, exit codes, job files
without their secrets, GPU time, tags and events, but without logs. The database is only read. Name it by the address of a PostgreSQL
database without the password, which is read from PGPASSWORD, PGPASSFILE or ~/.pgpass, or by a file that has the address with the password.
Jobs of people who aren't in this cluster are imported as well. paictl starts the program paictl-history for it, which is installed with paictl.

Existing people, groups and jobs stay as they are, so the command can be repeated, and completes an interrupted import. It needs a
kubeconfig of this cluster, and for people one of the other. The last column says what isn't imported, and why. OpenPAI's tokens aren't
valid here.`,
		Example: `  paictl migrate openpai --from-kubeconfig old.conf --dry-run
  paictl migrate openpai --from-kubeconfig old.conf --see-jobs --passwords
  paictl migrate openpai --from-kubeconfig old.conf --provider lab -o json
  paictl migrate openpai --history-from postgres://root@old-master:5432/openpai --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.From.Kubeconfig == "" && opts.HistoryFrom == "" {
				return cmdutil.Usagef("--from-kubeconfig is needed: the kubeconfig of the cluster of OpenPAI; or --history-from: its database")
			}
			if opts.Means.Passwords && opts.Means.Provider != "" {
				return cmdutil.Usagef("--passwords doesn't go with --provider: people whom a provider knew signed in with OIDC, and OpenPAI kept their object id as the password, which others know")
			}
			return openpaiRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.From.Kubeconfig, "from-kubeconfig", "", "kubeconfig of the cluster of OpenPAI")
	fl.StringVar(&opts.From.Context, "from-context", "", "context in that kubeconfig (default: its current context)")
	fl.StringVar(&opts.UserNamespace, "user-namespace", openpai.UserNamespace, "namespace of OpenPAI's users")
	fl.StringVar(&opts.GroupNamespace, "group-namespace", openpai.GroupNamespace, "namespace of OpenPAI's groups")
	fl.BoolVar(&opts.Means.SeeJobs, "see-jobs", false, "let members of a group see each other's jobs, as everyone could in OpenPAI")
	fl.StringVar(&opts.Means.Provider, "provider", "", "provider of sign-ins that knows the external names of groups")
	fl.BoolVar(&opts.Means.Passwords, "passwords", false, "import passwords; don't use it if people signed in with OIDC")
	fl.StringVar(&opts.HistoryFrom, "history-from", "", "OpenPAI's database, as postgres://USER@HOST:5432/DATABASE without a password, or a file that has its address")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "only show what would be done")
	_ = cmd.MarkFlagFilename("from-kubeconfig")
	_ = cmd.MarkFlagFilename("history-from")
	cmdutil.AddKubeFlags(cmd, &opts.To)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

// result is the output of "migrate openpai -o json". Items are the steps that were done or, in a dry run, would be done.
type result struct {
	DryRun  bool            `json:"dryRun"`
	Items   []openpai.Step  `json:"items"`
	History *history.Report `json:"history,omitempty"`
}

// openDirectory connects to the directory of users in a cluster. It sends no request yet.
func openDirectory(o kube.Options) (*kube.Cluster, *people.Directory, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, nil, err
	}
	jobs, err := job.New(c)
	if err != nil {
		return nil, nil, err
	}
	d, err := people.Open(c.Config, people.Options{Owns: jobs.Owns})
	return c, d, err
}

// openpaiRun imports users before jobs, because each job belongs to a user.
func openpaiRun(ctx context.Context, opts *OpenPAIOptions) error {
	j, err := openJobs(ctx, opts)
	if err != nil {
		return err
	}
	defer j.close()
	to, d, err := openDirectory(opts.To)
	if err != nil {
		return err
	}
	out := &result{DryRun: opts.DryRun, Items: []openpai.Step{}}
	if opts.From.Kubeconfig != "" {
		err = takePeople(ctx, opts, to, d, out)
	} else if err = d.Load(ctx); errors.Is(err, people.ErrUnprepared) {
		err = nil // the cluster has no users
	}
	if err == nil && j != nil {
		out.History, err = j.take(ctx, opts, func(user string) bool {
			_, unknown := d.Person(user)
			return unknown == nil || out.adds(user)
		})
	}
	err = to.Explain(err)
	if err != nil && len(out.Items) == 0 && out.History == nil {
		return err
	}
	return errors.Join(opts.show(out), err)
}

// adds reports whether the import adds the given user.
func (r *result) adds(user string) bool {
	return slices.ContainsFunc(r.Items, func(s openpai.Step) bool {
		return s.Kind == openpai.KindUser && s.Name == user && s.Action == openpai.Add
	})
}

func takePeople(ctx context.Context, opts *OpenPAIOptions, to *kube.Cluster, d *people.Directory, out *result) error {
	from, err := kube.Open(opts.From)
	if err != nil {
		return err
	}
	src, err := openpai.Read(ctx, from.Client, opts.UserNamespace, opts.GroupNamespace)
	if err != nil {
		return from.Explain(err)
	}
	if !opts.DryRun {
		err = d.Prepare(ctx)
	}
	if err == nil {
		err = d.Load(ctx)
	}
	if err != nil && (!opts.DryRun || !errors.Is(err, people.ErrUnprepared)) {
		return err
	}
	steps, err := openpai.Plan(ctx, src, d, opts.Means)
	if err != nil {
		return err
	}
	if n := len(src.Tokens); n > 0 {
		opts.Factory.IO.Say("%s had application tokens, which OpenPAI signed and which aren't valid here: they make new ones with paictl token create", plural.Of(n, "user"))
	}
	if opts.DryRun {
		out.Items = steps
		return nil
	}
	done := 0
	err = openpai.Apply(ctx, d, steps, func(*openpai.Step) { done++ })
	if out.Items = steps[:done]; err != nil {
		return hint.Wrap(to.Explain(err), fmt.Sprintf("%d of %d are done; run the command again for the others", done, len(steps)))
	}
	return d.Load(ctx)
}

// words maps the actions of steps to the words in the output. The key of the outer map is true for a dry run.
var words = map[bool]map[string]string{
	false: {openpai.Add: "added", openpai.Complete: "completed", openpai.Keep: "stays", openpai.LeaveOut: "left out"},
	true:  {openpai.Add: "would be added", openpai.Complete: "would be completed", openpai.Keep: "stays", openpai.LeaveOut: "left out"},
}

func (opts *OpenPAIOptions) show(out *result) error {
	t := cmdutil.Table{Header: []string{"NAME", "KIND", "ACTION", "NOT TAKEN"}}
	for i := range out.Items {
		s := &out.Items[i]
		notes := "-"
		if len(s.Notes) > 0 {
			notes = strings.Join(s.Notes, "; ")
		}
		t.Rows = append(t.Rows, []string{s.Name, s.Kind, words[opts.DryRun][s.Action], notes})
	}
	if out.History != nil {
		t.Rows = append(t.Rows, jobRows(out.History, opts.DryRun)...)
	}
	return opts.Output.Write(opts.Factory.IO.Out, out, t)
}
