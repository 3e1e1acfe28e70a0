package v3

import (
	"context"
	"net/http"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/desk"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

// templateBytes is how long a request with a template may be: a job file of 200 KiB and a description of 64 KiB, with their line ends escaped.
const templateBytes = 1 << 20

func templateRoutes() []server.Route {
	const one = api.Prefix + "/templates/{template}"
	none := server.Errors("NoTemplateError")
	wrong := server.Errors("InvalidProtocolError", "ConflictTemplateError", "NoEnoughQuotaError", "NoGroupError")
	return []server.Route{
		server.JSON("GET", api.Prefix+"/templates", "templates.list", "Lists job templates, without descriptions and job files", templates),
		server.JSON("POST", api.Prefix+"/templates", "template.add", "Adds a job template of one's own; secrets of its job file are masked", addTemplate, server.Status(http.StatusCreated), server.Body(templateBytes), wrong),
		server.JSON("GET", one, "template.read", "Tells about a job template, with its job file", getTemplate, none),
		server.JSON("PUT", one, "template.change", "Makes a job template another one", putTemplate, server.Body(templateBytes), none, wrong, server.Errors("ConflictError")),
		server.JSON("DELETE", one, "template.remove", "Removes a job template", removeTemplate, none),
		server.JSON("PUT", one+"/star", "template.star", "Gives a job template one's star", starTemplate, none),
		server.JSON("DELETE", one+"/star", "template.star", "Takes one's star from a job template", unstarTemplate, none),
		server.JSON("POST", one+"/use", "template.star", "Counts a job that was submitted from a template", useTemplate, none),
	}
}

type templatesIn struct {
	Author  string `query:"author"`
	Name    string `query:"name"`
	Keyword string `query:"keyword"`
}

// Rows is how many are asked for at most.
func (*templatesIn) Rows() int { return maxRows }

func templates(_ context.Context, d *desk.Desk, in *templatesIn) (*api.Templates, error) {
	all, err := d.Templates()
	if err != nil {
		return nil, err
	}
	out := &api.Templates{Items: []api.Template{}}
	for i := range all {
		if s := &all[i].Spec; all[i].Has(in.Keyword) && (in.Author == "" || s.Author == in.Author) && (in.Name == "" || s.Name == in.Name) {
			out.Items = append(out.Items, api.NewTemplate(all[i].Template, d.Name()).Brief())
		}
	}
	return out, nil
}

// seen is a template as it is answered.
func seen(d *desk.Desk, t *desk.Template, err error) (*api.Template, error) {
	if err != nil {
		return nil, err
	}
	return api.NewTemplate(t.Template, d.Name()), nil
}

type addTemplateIn struct {
	Body v1.TemplateSpec `body:"json"`
}

func addTemplate(ctx context.Context, d *desk.Desk, in *addTemplateIn) (*api.Template, error) {
	if in.Body.Author == "" {
		in.Body.Author = d.Name()
	}
	t, err := d.AddTemplate(ctx, in.Body)
	return seen(d, t, err)
}

type templateIn struct {
	Template string `path:"template"`
}

func getTemplate(_ context.Context, d *desk.Desk, in *templateIn) (*api.Template, error) {
	t, err := d.Template(in.Template)
	return seen(d, t, err)
}

type putTemplateIn struct {
	Template string             `path:"template"`
	Body     api.TemplateChange `body:"json"`
}

func putTemplate(ctx context.Context, d *desk.Desk, in *putTemplateIn) (*api.Template, error) {
	if in.Body.Version <= 0 {
		return nil, wire.Bad(`"version" is required: that of the template as it was read`)
	}
	t, err := d.ChangeTemplate(ctx, in.Template, in.Body.Version, func(spec *v1.TemplateSpec) error {
		*spec = in.Body.Spec
		return nil
	})
	return seen(d, t, err)
}

func removeTemplate(ctx context.Context, d *desk.Desk, in *templateIn) (*struct{}, error) {
	return &struct{}{}, d.RemoveTemplate(ctx, in.Template)
}

func starTemplate(ctx context.Context, d *desk.Desk, in *templateIn) (*api.Template, error) {
	t, err := d.StarTemplate(ctx, in.Template, true)
	return seen(d, t, err)
}

func unstarTemplate(ctx context.Context, d *desk.Desk, in *templateIn) (*api.Template, error) {
	t, err := d.StarTemplate(ctx, in.Template, false)
	return seen(d, t, err)
}

func useTemplate(ctx context.Context, d *desk.Desk, in *templateIn) (*struct{}, error) {
	return &struct{}{}, d.UseTemplate(ctx, in.Template)
}
