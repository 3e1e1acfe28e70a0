package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/openpai"
	"github.com/openpai/paictl/pkg/people"
)

// OpenPAIOptions are those of "paictl migrate openpai".
type OpenPAIOptions struct {
	Factory                       *cmdutil.Factory
	From, To                      kube.Options
	UserNamespace, GroupNamespace string
	Means                         openpai.Options
	DryRun                        bool
	Output                        cmdutil.Output
}

// NewCmdOpenPAI returns "paictl migrate openpai". runF replaces the run in tests.
func NewCmdOpenPAI(f *cmdutil.Factory, runF func(context.Context, *OpenPAIOptions) error) *cobra.Command {
	opts := &OpenPAIOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "openpai --from-kubeconfig FILE",
		Short: "Take people and groups over from a cluster of OpenPAI",
		Long: `Reads users and groups from the Secrets of a cluster of OpenPAI, which stays as it is, and adds those that aren't in this cluster
yet: with groups, grants, e-mail addresses, public keys, and what clients stored with them. No one is put into a group that is there
and grants more than the group of that name did in OpenPAI.

Passwords are taken with --passwords alone, and keep working then: they are hashed in a better way when a person signs in first. Don't
use it where people signed in to OpenPAI with OIDC: OpenPAI kept their object id as the password, which others know.

What is there already stays as it is, so the command can be repeated, and finishes what an earlier run has begun. It needs
kubeconfigs of both clusters. The last column says what isn't taken, and why. Tokens and the history of jobs aren't taken.`,
		Example: `  paictl migrate openpai --from-kubeconfig old.conf --dry-run
  paictl migrate openpai --from-kubeconfig old.conf --see-jobs --passwords
  paictl migrate openpai --from-kubeconfig old.conf --provider lab -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.From.Kubeconfig == "" {
				return cmdutil.Usagef("--from-kubeconfig is needed: the kubeconfig of the cluster of OpenPAI")
			}
			if opts.Means.Passwords && opts.Means.Provider != "" {
				return cmdutil.Usagef("--passwords doesn't go with --provider: people whom a provider knew signed in with OIDC, and OpenPAI kept their object id as the password, which others know")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
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
	fl.BoolVar(&opts.Means.Passwords, "passwords", false, "take passwords; never where people signed in with OIDC")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "only say what would be done")
	_ = cmd.MarkFlagFilename("from-kubeconfig")
	cmdutil.AddKubeFlags(cmd, &opts.To)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func openpaiRun(ctx context.Context, opts *OpenPAIOptions) error {
	from, err := kube.Open(opts.From)
	if err != nil {
		return err
	}
	to, d, err := user.OpenDirectory(opts.To)
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
		return to.Explain(err)
	}
	steps, err := openpai.Plan(ctx, src, d, opts.Means)
	if err != nil {
		return to.Explain(err)
	}
	if opts.DryRun {
		return opts.show(steps)
	}
	done := 0
	if err := openpai.Apply(ctx, d, steps, func(*openpai.Step) { done++ }); err != nil {
		return errors.Join(opts.show(steps[:done]), hint.Wrap(to.Explain(err), fmt.Sprintf("%d of %d are done; run the command again for the others", done, len(steps))))
	}
	return opts.show(steps)
}

// words are what was done, or would be.
var words = map[bool]map[string]string{
	false: {openpai.Add: "added", openpai.Complete: "completed", openpai.Keep: "stays", openpai.LeaveOut: "left out"},
	true:  {openpai.Add: "would be added", openpai.Complete: "would be completed", openpai.Keep: "stays", openpai.LeaveOut: "left out"},
}

func (opts *OpenPAIOptions) show(steps []openpai.Step) error {
	t := cmdutil.Table{Header: []string{"NAME", "KIND", "ACTION", "NOT TAKEN"}}
	for i := range steps {
		s := &steps[i]
		notes := "-"
		if len(s.Notes) > 0 {
			notes = strings.Join(s.Notes, "; ")
		}
		t.Rows = append(t.Rows, []string{s.Name, s.Kind, words[opts.DryRun][s.Action], notes})
	}
	return opts.Output.Write(opts.Factory.IO.Out, struct {
		DryRun bool           `json:"dryRun"`
		Items  []openpai.Step `json:"items"`
	}{opts.DryRun, steps}, t)
}
