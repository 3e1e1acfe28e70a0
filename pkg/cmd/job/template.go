package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdTemplate returns "paictl job template".
func NewCmdTemplate(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "template",
		Aliases: []string{"templates"},
		Short:   "Keep job files as templates, and share them",
		Long: `A template is a job file with a description, kept in the cluster. It is yours alone, or for members of groups, or for everyone.
Administrators see all templates. Secrets are never kept: a mask is in the place of each.

NAME is one of your templates; AUTHOR/NAME is another person's. When a person is removed from the cluster, so are their templates.

Each cluster also has a catalogue of built-in templates, such as pytorch-ddp and jupyter: NAME is one of them unless you have a
template with this name, and @catalogue/NAME always is. No one can change them: push a copy, and change that.`,
		Example: `  paictl job template push train.yaml --summary "BERT on 8 GPUs" --public
  paictl job template list --keyword bert
  paictl job template show ann/train
  paictl job submit --template ann/train --name my-train --set lr=0.01
  paictl job submit --template pytorch-ddp --set steps=500`,
	}
	cmd.AddCommand(newCmdTemplateList(f), newCmdTemplateShow(f), newCmdTemplatePush(f), newCmdTemplateStar(f), newCmdTemplateRemove(f))
	return cmd
}

// TemplateFlags are the flags that all commands on templates have.
type TemplateFlags struct{ Flags }

func (fl *TemplateFlags) add(f *cmdutil.Factory, cmd *cobra.Command) {
	fl.addConnection(f, cmd)
	cmd.Flags().StringVarP(&fl.User, "user", "u", "", "with a kubeconfig: your name (default: the setting user, or your login name)")
}

// openTemplates connects to the templates of a cluster. It also returns the name of the user.
func (fl *Flags) openTemplates(ctx context.Context, f *cmdutil.Factory) (t *client.Server, me string, err error) {
	if w, err := connection.Choose(f, fl.Kube, fl.Server); err != nil {
		return nil, "", err
	} else if w == nil {
		if me, err = fl.unsigned(f); err != nil {
			return nil, "", err
		}
	}
	w, err := connection.Open(f, fl.Kube, fl.Server, me)
	switch {
	case err != nil:
		return nil, "", err
	case w.Operator:
		return w.Server, me, nil
	}
	me, err = (&client.Jobs{Server: w.Server, Name: w.User}).Me(ctx)
	if err == nil && fl.User != "" && fl.User != me {
		err = hint.Errorf("remove --user, or use the cluster's kubeconfig: --kubeconfig FILE", "you are signed in as %s", me)
	}
	return w.Server, me, err
}

// titled returns the full name of a template: AUTHOR/NAME.
func titled(t *api.Template) string { return t.Author + "/" + t.Name }

// authorOf splits AUTHOR/NAME. If name contains no author, the author is the user.
func authorOf(name, me string) (author, short string) {
	if author, short, others := strings.Cut(name, "/"); others {
		return author, short
	}
	return me, name
}

// resolveTemplate finds a template by its name, by AUTHOR/NAME, or by its ID. If the user has no template with the name, it searches the
// built-in templates.
func resolveTemplate(ctx context.Context, t *client.Server, me, name string) (*api.Template, error) {
	author, short := authorOf(name, me)
	found, err := t.Templates(ctx, author, short, "")
	if err == nil && len(found) == 0 && author == me && !strings.Contains(name, "/") {
		found, err = t.Templates(ctx, v1.AuthorBuiltIn, short, "")
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) > 1:
		return nil, hint.Errorf("name one by its id: "+found[0].ID, "%s has %d templates named %s", author, len(found), short)
	case len(found) == 1:
		return t.Template(ctx, found[0].ID)
	case templateID(name):
		return t.Template(ctx, name)
	}
	return nil, hint.Errorf("see: paictl job template list", "there is no template %s/%s", author, short)
}

// templateID reports whether a text has the form of the ID of a template.
func templateID(text string) bool { return len(text) == 36 && strings.Count(text, "-") == 4 }

// completeTemplates completes up to most names of templates. If most is 0, it completes any number of names; if most is cmdutil.FlagValue, it
// completes the value of a flag.
func (fl *Flags) completeTemplates(f *cmdutil.Factory, most int) cobra.CompletionFunc {
	return f.Complete(most, func(ctx context.Context, _ []string) (out []string, _ error) {
		t, me, err := fl.openTemplates(ctx, f)
		if err != nil {
			return nil, err
		}
		all, err := t.Templates(ctx, "", "", "")
		for i := range all {
			name := titled(&all[i])
			if all[i].Author == me || all[i].BuiltIn && !slices.Contains(out, all[i].Name) {
				name = all[i].Name
			}
			out = append(out, name)
		}
		return out, err
	})
}

// sharedWith describes the users of a template: "everyone", the names of groups, or "the author".
func sharedWith(t *api.Template) string {
	switch {
	case t.Public:
		return "everyone"
	case len(t.Groups) > 0:
		return strings.Join(t.Groups, ", ")
	}
	return "the author"
}

// eachTemplate calls run for each template with one of the names.
func (fl *TemplateFlags) eachTemplate(ctx context.Context, f *cmdutil.Factory, names []string, run func(*client.Server, *api.Template) error) error {
	t, me, err := fl.openTemplates(ctx, f)
	if err != nil {
		return err
	}
	return eachName(ctx, f, names, func(name string) error {
		one, err := resolveTemplate(ctx, t, me, name)
		if err != nil {
			return err
		}
		return run(t, one)
	})
}

// sayMasked prints that the secrets in the job file of a template must be filled in before it is submitted.
func sayMasked(f *cmdutil.Factory, t *api.Template) {
	f.IO.Say("its secrets are masked: before you submit it, write them into the file that \"%s\" prints", showConfig(t))
}

func showConfig(t *api.Template) string {
	name := titled(t)
	if strings.ContainsAny(name, " ()&") {
		name = fmt.Sprintf("%q", name)
	}
	return "paictl job template show " + name + " --config"
}
