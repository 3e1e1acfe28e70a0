package api

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Template is a job template. Lists leave out description and job file.
type Template struct {
	ID string `json:"id"`
	v1.TemplateSpec
	// Version changes with each change of the spec.
	Version int64 `json:"version"`
	Uses    int64 `json:"uses"`
	Stars   int   `json:"stars"`
	// Starred reports whether one of the stars is the caller's.
	Starred bool `json:"starred"`
	// BuiltIn marks a template that is part of the program, which no one can change. It has no times.
	BuiltIn bool      `json:"builtIn"`
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// NewTemplate returns a template as a person sees it.
func NewTemplate(t *v1.Template, person string) *Template {
	out := &Template{ID: string(t.UID), TemplateSpec: *t.Spec.DeepCopy(), Version: t.Generation, Uses: t.Status.Uses, Stars: len(t.Status.Stars),
		BuiltIn: t.BuiltIn(), Created: t.CreationTimestamp.UTC(), Updated: t.Updated().UTC()}
	for _, name := range t.Status.Stars {
		out.Starred = out.Starred || name == person && person != ""
	}
	return out
}

// Brief returns the template without the fields that lists leave out.
func (t *Template) Brief() Template {
	out := *t
	out.Description, out.Job = "", ""
	return out
}

// Templates are templates, by author and name. Those that are built in come last.
type Templates struct {
	Items []Template `json:"items"`
}

// TemplateChange replaces the spec of a template. Version is the version that the client read. If the version has changed since, the request fails
// (409).
type TemplateChange struct {
	Version int64           `json:"version"`
	Spec    v1.TemplateSpec `json:"spec"`
}
