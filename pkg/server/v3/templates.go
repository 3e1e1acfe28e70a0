package v3

import (
	"context"
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

// templateBytes limits the size of a request with a template. A template contains a job file of at most 200 KiB and a description of at most 64 KiB.
// JSON escapes their line ends.
const templateBytes = 1 << 20

func templateRoutes() []server.Route {
	const one = api.Prefix + "/templates/{template}"
	none := server.Errors("NoTemplateError")
	wrong := server.Errors("InvalidProtocolError", "ConflictTemplateError", "NoEnoughQuotaError", "NoGroupError")
	return []server.Route{
		server.Listing[templatesIn, api.Templates](api.Prefix+"/templates", "templates.list", "Lists job templates, without descriptions and job files", templates),
		server.JSON("POST", api.Prefix+"/templates", "template.add", "Adds a job template, and masks the secrets of its job file", addTemplate, server.Status(http.StatusCreated), server.Body(templateBytes), server.Templates(), server.Each(submissions), wrong),
		server.JSON("GET", one, "template.read", "Returns a job template, with its job file", getTemplate, none),
		server.JSON("PUT", one, "template.change", "Replaces a job template", putTemplate, server.Body(templateBytes), server.Templates(), server.Each(submissions), none, wrong, server.Errors("ConflictError")),
		server.JSON("DELETE", one, "template.remove", "Removes a job template", removeTemplate, none),
		server.JSON("PUT", one+"/star", "template.star", "Stars a job template", starTemplate, server.Templates(), none),
		server.JSON("DELETE", one+"/star", "template.star", "Removes your star from a job template", unstarTemplate, server.Templates(), none),
		server.JSON("POST", one+"/use", "template.star", "Counts a job that was submitted from a template", useTemplate, none),
	}
}

type templatesIn struct {
	Author  string `query:"author"`
	Name    string `query:"name"`
	Keyword string `query:"keyword"`
}

func templates(c *server.Call, in *templatesIn) error {
	all, err := c.Actions.Templates()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(t app.Template) bool {
		return !t.Has(in.Keyword) || in.Author != "" && t.Spec.Author != in.Author || in.Name != "" && t.Spec.Name != in.Name
	})
	bytes := 0
	for i := range all {
		_, brief := all[i].Bytes()
		bytes += brief
	}
	return c.List(`{"items":`, `}`, bytes, func(yield func(any) bool) {
		for i := range all {
			if !yield(api.NewTemplate(all[i].Template, c.Actions.Name()).Brief()) {
				return
			}
		}
	})
}

// seen converts a template to its form in responses.
func seen(d *app.Actions, t *app.Template, err error) (*api.Template, error) {
	if err != nil {
		return nil, err
	}
	return api.NewTemplate(t.Template, d.Name()), nil
}

type addTemplateIn struct {
	Body v1.TemplateSpec `body:"json"`
}

func addTemplate(ctx context.Context, d *app.Actions, in *addTemplateIn) (*api.Template, error) {
	if in.Body.Author == "" {
		in.Body.Author = d.Name()
	}
	t, err := d.AddTemplate(ctx, in.Body)
	return seen(d, t, err)
}

type templateIn struct {
	Template string `path:"template"`
}

func getTemplate(_ context.Context, d *app.Actions, in *templateIn) (*api.Template, error) {
	t, err := d.Template(in.Template)
	return seen(d, t, err)
}

type putTemplateIn struct {
	Template string             `path:"template"`
	Body     api.TemplateChange `body:"json"`
}

func putTemplate(ctx context.Context, d *app.Actions, in *putTemplateIn) (*api.Template, error) {
	if in.Body.Version <= 0 {
		return nil, wire.Bad(`"version" is required: that of the template as it was read`)
	}
	t, err := d.ChangeTemplate(ctx, in.Template, in.Body.Version, func(t *v1.Template) error {
		t.Spec = in.Body.Spec
		return nil
	})
	return seen(d, t, err)
}

func removeTemplate(ctx context.Context, d *app.Actions, in *templateIn) (*struct{}, error) {
	return &struct{}{}, d.RemoveTemplate(ctx, in.Template)
}

func starTemplate(ctx context.Context, d *app.Actions, in *templateIn) (*api.Template, error) {
	t, err := d.StarTemplate(ctx, in.Template, true)
	return seen(d, t, err)
}

func unstarTemplate(ctx context.Context, d *app.Actions, in *templateIn) (*api.Template, error) {
	t, err := d.StarTemplate(ctx, in.Template, false)
	return seen(d, t, err)
}

func useTemplate(ctx context.Context, d *app.Actions, in *templateIn) (*struct{}, error) {
	return &struct{}{}, d.UseTemplate(ctx, in.Template)
}
