package job

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// TemplatePushOptions are the options of "paictl job template push".
type TemplatePushOptions struct {
	Factory *cmdutil.Factory
	Flags   TemplateFlags
	File    string
	Name    string
	// Set reports whether the user gave a flag. Fields whose flags weren't given stay unchanged.
	Set         func(flag string) bool
	Summary     string
	Description string
	Categories  []string
	Tags        []string
	Public      bool
	Private     bool
	Groups      []string
	Output      cmdutil.Output
}

func newCmdTemplatePush(f *cmdutil.Factory) *cobra.Command {
	opts := &TemplatePushOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "push [FILE]",
		Short: "Keep a job file as a template, or change one",
		Long: `Stores a job file as your template; without --public or --group only you can see it. If you already have a template of that name,
the flags and FILE change it, and everything else stays the same. An administrator changes the template of another user with
--name AUTHOR/NAME. FILE can be - for standard input.

Values below "secrets" in the file, and passwords of registries, are masked before the template is kept. If there are any, comments are
left out, too, because people keep old passwords in them.`,
		Example: `  paictl job template push train.yaml --summary "BERT on 8 GPUs" --tag bert --public
  paictl job template push train.yaml --name "BERT (large)" --description README.md --group vision
  paictl job template push --name "BERT (large)" --private`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Set = cmd.Flags().Changed
			if len(args) > 0 {
				opts.File = args[0]
			}
			if opts.File == "" && opts.Name == "" {
				return cmdutil.Usagef("name a job file, or a template to change: --name NAME (see %s --help)", cmd.CommandPath())
			}
			if opts.Public && opts.Private || len(opts.Groups) > 0 && (opts.Public || opts.Private) {
				return cmdutil.Usagef("give one of --public, --private and --group (see %s --help)", cmd.CommandPath())
			}
			return templatePushRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	fl := cmd.Flags()
	fl.StringVar(&opts.Name, "name", "", "name of the template (default: the job's name in the file)")
	fl.StringVar(&opts.Summary, "summary", "", "what it is for, in one line")
	fl.StringVar(&opts.Description, "description", "", "a file in Markdown that describes it")
	_ = cmd.MarkFlagFilename("description", "md", "txt")
	fl.StringSliceVar(&opts.Categories, "category", nil, "categories, with commas between")
	fl.StringSliceVar(&opts.Tags, "tag", nil, "tags, with commas between")
	fl.BoolVar(&opts.Public, "public", false, "show it to everyone")
	fl.BoolVar(&opts.Private, "private", false, "show it only to you")
	fl.StringSliceVar(&opts.Groups, "group", nil, "show it to the members of these groups, which must be yours")
	_ = cmd.RegisterFlagCompletionFunc("name", opts.Flags.completeTemplates(f, cmdutil.FlagValue))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func templatePushRun(ctx context.Context, opts *TemplatePushOptions) error {
	text, name, err := opts.read()
	if err != nil {
		return err
	}
	description, err := opts.describe()
	if err != nil {
		return err
	}
	c, me, err := opts.Flags.openTemplates(ctx, opts.Factory)
	if err != nil {
		return err
	}
	author, short := authorOf(name, me)
	have, err := c.Templates(ctx, author, short, "")
	if err != nil {
		return err
	}
	change := func(s *v1.TemplateSpec) {
		if opts.File != "" {
			s.Job = text
		}
		opts.apply(s, description)
	}
	if len(have) == 0 && opts.File != "" {
		spec := v1.TemplateSpec{Name: short, Author: author, Type: "template"}
		change(&spec)
		made, err := c.AddTemplate(ctx, spec)
		return opts.tell(made, "kept", err)
	}
	was, err := resolveTemplate(ctx, c, me, name)
	if err != nil {
		return err
	}
	next := api.TemplateChange{Version: was.Version, Spec: was.TemplateSpec}
	change(&next.Spec)
	made, err := c.PutTemplate(ctx, was.ID, next)
	return opts.tell(made, "changed", err)
}

// read returns the text of the job file, and the name of the template. Without a file, the text is empty.
func (opts *TemplatePushOptions) read() (text, name string, err error) {
	if opts.File == "" {
		return "", opts.Name, nil
	}
	data, err := readJob(opts.Factory.IO, opts.File)
	if err != nil {
		return "", "", err
	}
	j, found := protocol.ParseMasked(opts.File, data)
	if err := report(opts.Factory, found); err != nil {
		return "", "", err
	}
	if opts.Name != "" {
		return string(data), opts.Name, nil
	}
	return string(data), j.Name, nil
}

// maxDescription is how many bytes of a description are read. The server's limit is lower.
const maxDescription = 1 << 20

func (opts *TemplatePushOptions) describe() (string, error) {
	if opts.Description == "" {
		return "", nil
	}
	file, err := os.Open(opts.Description)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxDescription))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", opts.Description, err)
	}
	return string(text), nil
}

// apply changes the fields of a template that the flags set.
func (opts *TemplatePushOptions) apply(s *v1.TemplateSpec, description string) {
	for flag, set := range map[string]func(){
		"summary":     func() { s.Summary = opts.Summary },
		"description": func() { s.Description = description },
		"category":    func() { s.Categories = opts.Categories },
		"tag":         func() { s.Tags = opts.Tags },
		"group":       func() { s.Public, s.Groups = false, opts.Groups },
	} {
		if opts.Set(flag) {
			set()
		}
	}
	if opts.Public || opts.Private {
		s.Public, s.Groups = opts.Public, nil
	}
}

func (opts *TemplatePushOptions) tell(t *api.Template, done string, err error) error {
	if err != nil {
		return err
	}
	if template.Masked(t.Job) {
		sayMasked(opts.Factory, t)
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, t, cmdutil.Table{})
	}
	_, err = fmt.Fprintf(opts.Factory.IO.Out, "%s is %s, for %s\n", titled(t), done, sharedWith(t))
	return err
}
