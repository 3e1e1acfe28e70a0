package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func templatePath(id, more string) string {
	return api.Prefix + "/templates/" + url.PathEscape(id) + more
}

// Templates returns the job templates that the user sees, without their descriptions and job files. An empty argument doesn't restrict the
// selection.
func (s *Server) Templates(ctx context.Context, author, name, keyword string) ([]api.Template, error) {
	q := url.Values{}
	for key, value := range map[string]string{"author": author, "name": name, "keyword": keyword} {
		if value != "" {
			q.Set(key, value)
		}
	}
	all, err := answered[api.Templates](ctx, s, get(api.Prefix+"/templates", q), nil)
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// Template returns the template with an ID, including its job file.
func (s *Server) Template(ctx context.Context, id string) (*api.Template, error) {
	return answered[api.Template](ctx, s, get(templatePath(id, ""), nil), nil)
}

// AddTemplate adds a template that belongs to the signed-in user.
func (s *Server) AddTemplate(ctx context.Context, spec v1.TemplateSpec) (*api.Template, error) {
	q, err := post(api.Prefix+"/templates", nil, spec)
	return answered[api.Template](ctx, s, q, err)
}

// PutTemplate changes the template with an ID, and returns the changed template.
func (s *Server) PutTemplate(ctx context.Context, id string, c api.TemplateChange) (*api.Template, error) {
	q, err := change(http.MethodPut, templatePath(id, ""), c)
	return answered[api.Template](ctx, s, q, err)
}

// RemoveTemplate removes the template with an ID.
func (s *Server) RemoveTemplate(ctx context.Context, id string) error {
	q, err := change(http.MethodDelete, templatePath(id, ""), nil)
	return s.done(ctx, q, err)
}

// StarTemplate adds or removes the signed-in user's star of a template.
func (s *Server) StarTemplate(ctx context.Context, id string, yes bool) (*api.Template, error) {
	method := http.MethodPut
	if !yes {
		method = http.MethodDelete
	}
	q, err := change(method, templatePath(id, "/star"), nil)
	q.again = true
	return answered[api.Template](ctx, s, q, err)
}

// UseTemplate increases the count of jobs that were submitted from a template.
func (s *Server) UseTemplate(ctx context.Context, id string) error {
	q, err := post(templatePath(id, "/use"), nil, nil)
	return s.done(ctx, q, err)
}
