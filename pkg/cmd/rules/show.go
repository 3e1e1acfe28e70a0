package rules

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ShowOptions are the options of "paictl rules show".
type ShowOptions struct {
	IO      *iostreams.IOStreams
	Kube    kube.Options
	Output  cmdutil.Output
	Builtin bool
	Code    string
}

// NewCmdShow returns "paictl rules show".
func NewCmdShow(f *cmdutil.Factory) *cobra.Command {
	opts := &ShowOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "show [CODE|PHRASE]",
		Short: "Show the failure rules of the cluster, or one of them",
		Long: `Prints the rules file of the cluster, including comments, or with -o table one line per rule. With a
code or a phrase it shows only that rule. --builtin shows the built-in rules, and connects to no cluster.`,
		Example: `  paictl rules show --builtin > rules.yaml
  paictl rules show -o table
  paictl rules show 226
  paictl rules show --builtin ContainerNcclTimeout`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeCodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Code = args[0]
			}
			return showRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmd.Flags().BoolVar(&opts.Builtin, "builtin", false, "the built-in rules")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "table", "wide", "json", "yaml")
	return cmd
}

func completeCodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, r := range rules.Builtin().Rules {
		out = append(out, r.Phrase)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func showRun(ctx context.Context, opts *ShowOptions) error {
	name, text := rules.File, rules.BuiltinText()
	if !opts.Builtin {
		h, err := open(ctx, opts.Kube)
		if err != nil {
			return hint.Wrap(err, strings.TrimPrefix(hint.Of(err)+"; the built-in rules are shown with --builtin", "; "))
		}
		name, text = h.text()
	}
	if opts.Code == "" && opts.Output.Is("text") {
		_, err := opts.IO.Out.Write(text)
		return err
	}
	set, findings := rules.Parse(name, text)
	if err := findings.Err(); err != nil {
		return hint.Wrap(fmt.Errorf("the cluster's rules have mistakes and are not used: %w", err), "push valid rules with: paictl rules push")
	}
	if opts.Code == "" {
		return opts.Output.Write(opts.IO.Out, set.Rules, table(set))
	}
	all := "paictl rules show -o table"
	if opts.Builtin {
		all = "paictl rules show --builtin -o table"
	}
	r, err := find(set, opts.Code, all)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.IO.Out, r, table(&rules.Set{Rules: []rules.Rule{r}}))
	}
	return writeRule(opts.IO.Out, r)
}

// find returns the rule with the given code or phrase. The phrase may also have the form that tables and pages show. all is the command that
// shows all rules; it is part of the remedy.
func find(set *rules.Set, what, all string) (rules.Rule, error) {
	if code, err := strconv.Atoi(what); err == nil {
		r := set.ByCode(code)
		if r.Code == code {
			return r, nil
		}
		return r, hint.Errorf("see all with: "+all, "no rule has code %d; as %s it is retried as often as jobRetryCount says", code, r.Phrase)
	}
	var phrases []string
	for _, r := range set.Rules {
		if strings.EqualFold(r.Phrase, what) || strings.EqualFold(rules.Words(r.Phrase), what) {
			return r, nil
		}
		phrases = append(phrases, r.Phrase)
	}
	remedy := "see all with: " + all
	if near := strictyaml.Nearest(what, phrases); near != "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	return rules.Rule{}, hint.Errorf(remedy, "no rule has the phrase %q", what)
}

func table(set *rules.Set) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"CODE", "PHRASE", "TYPE", "STAGE", "BEHAVIOR", "REACTION", "CAUSED BY"}}
	for _, r := range set.Rules {
		t.Rows = append(t.Rows, []string{strconv.Itoa(r.Code), r.Phrase, r.Type, r.Stage, r.Behavior, r.Reaction, r.Causer})
	}
	return t
}

// writeRule prints one rule in the form of a rules file.
func writeRule(w io.Writer, r rules.Rule) error {
	text, err := strictyaml.Encode([]rules.Rule{r}, nil)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
