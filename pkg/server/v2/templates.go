package v2

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/version"
)

const (
	// market is the prefix of the paths that OpenPAI's marketplace plugin requests.
	market = "/marketplace/api"
	// templateBytes limits the size of a request with an item. An item contains a job file of at most 200 KiB and a description of at most 64 KiB.
	// JSON escapes their line ends.
	templateBytes = 1 << 20
)

func templateRoutes() []server.Route {
	const all, one = prefix + "/templates", prefix + "/templates/{template}"
	also, alsoOne := server.Also(market+"/items"), server.Also(market+"/items/{template}")
	wrong := []string{"InvalidProtocolError", "ConflictTemplateError", "NoEnoughQuotaError", "NoGroupError"}
	return []server.Route{
		server.Listing[itemsIn, []item](all, "templates.list", "Lists job templates, as items of OpenPAI's marketplace", listItems, also),
		server.JSON(http.MethodPost, all, "template.add", "Adds a job template, and masks the secrets of its protocol", postItem, also, server.Status(http.StatusCreated), server.Body(templateBytes), server.Templates(), server.Each(submissions), server.Errors(wrong...)),
		server.JSON(http.MethodGet, one, "template.read", "Returns a job template", getItem, alsoOne, server.Errors("NoTemplateError")),
		{Method: http.MethodPut, Path: one, Aliases: []string{market + "/items/{template}"}, Rule: "template.change", Summary: "Changes the fields of a job template that are in the body", Serve: putItem, In: reflect.TypeFor[putItemIn](),
			Media: "text/plain; charset=utf-8", Limit: server.Limit{Body: templateBytes, Template: true, Each: submissions}, Errors: append([]string{"NoTemplateError", codeWord}, wrong...)},
		{Method: http.MethodDelete, Path: one, Aliases: []string{market + "/items/{template}"}, Rule: "template.remove", Summary: "Removes a job template", Serve: deleteItem, In: reflect.TypeFor[itemIn](),
			Media: "text/plain; charset=utf-8", Errors: []string{"NoTemplateError"}},
		server.Listing[struct{}, []label](all+"/tags", "templates.list", "Lists the tags of job templates", listTags, server.Also(market+"/tags")),
		server.Listing[struct{}, []label](all+"/categories", "templates.list", "Lists the categories of job templates", listCategories, server.Also(market+"/categories")),
	}
}

// label is a tag or a category. In OpenPAI, the id of a label differs from its name.
type label struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func labels(names []string) []label {
	out := []label{}
	for _, name := range names {
		out = append(out, label{name, name})
	}
	return out
}

// item is a template in the format that the marketplace's pages read.
type item struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	Author         string    `json:"author"`
	Type           string    `json:"type"`
	Source         string    `json:"source"`
	Public         bool      `json:"isPublic"`
	Private        bool      `json:"isPrivate"`
	Groups         []string  `json:"groupList"`
	DataType       string    `json:"dataType"`
	DataURL        string    `json:"dataUrl"`
	UseBlob        bool      `json:"useBlob"`
	Categories     []string  `json:"categories"`
	Tags           []string  `json:"tags"`
	Summary        string    `json:"summary"`
	Description    string    `json:"description"`
	Protocol       string    `json:"protocol"`
	Uses           int64     `json:"useNumber"`
	Stars          int       `json:"starNumber"`
	Status         string    `json:"status"`
	Created        time.Time `json:"createdAt,omitzero"`
	Updated        time.Time `json:"updatedAt,omitzero"`
	ItemTags       []label   `json:"ItemTags"`
	ItemCategories []label   `json:"ItemCategories"`
}

// These values of OpenPAI are the same for all templates of paictl.
const (
	sourceMarket   = "marketplace"
	statusApproved = "approved"
)

func newItem(t *v1.Template) item {
	s := &t.Spec
	created, updated := t.CreationTimestamp.UTC(), t.Updated().UTC()
	if t.BuiltIn() {
		created = built()
		updated = created
	}
	return item{
		ID: string(t.UID), Name: s.Name, Author: s.Author, Type: s.Type, Source: sourceMarket, Public: s.Public, Private: private(s), Groups: append([]string{}, s.Groups...),
		DataType: s.DataType, DataURL: s.DataURL, Categories: append([]string{}, s.Categories...), Tags: append([]string{}, s.Tags...), Summary: s.Summary, Description: s.Description,
		Protocol: s.Job, Uses: t.Status.Uses, Stars: len(t.Status.Stars), Status: statusApproved, Created: created, Updated: updated,
		ItemTags: labels(s.Tags), ItemCategories: labels(s.Categories),
	}
}

// built returns the build time of this program. The marketplace shows the age of a template, but built-in templates have no creation time in the
// cluster. If the build time is unknown, built returns the zero time, which an item omits.
func built() time.Time {
	at, err := time.Parse(time.RFC3339, version.Get().Date)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

func private(s *v1.TemplateSpec) bool { return !s.Public && len(s.Groups) == 0 }

type itemsIn struct {
	Name     string   `query:"name"`
	Author   string   `query:"author"`
	Type     string   `query:"type"`
	Source   string   `query:"source"`
	Keyword  string   `query:"keyword"`
	Tags     []string `query:"tag"`
	Category []string `query:"category"`
	Public   *bool    `query:"isPublic"`
	Private  *bool    `query:"isPrivate"`
}

func (in *itemsIn) fits(t *v1.Template) bool {
	s := &t.Spec
	for want, have := range map[string]string{in.Name: s.Name, in.Author: s.Author, in.Type: s.Type, in.Source: sourceMarket} {
		if want != "" && want != have {
			return false
		}
	}
	return t.Has(in.Keyword) && all(in.Tags, s.Tags) && all(in.Category, s.Categories) &&
		(in.Public == nil || *in.Public == s.Public) && (in.Private == nil || *in.Private == private(s))
}

func all(want, have []string) bool {
	return !slices.ContainsFunc(want, func(one string) bool { return !slices.Contains(have, one) })
}

// listItems responds with templates and their job files. It counts the memory of the job files toward the limits.
func listItems(c *server.Call, in *itemsIn) error {
	seen, err := c.Actions.Templates()
	if err != nil {
		return err
	}
	seen = slices.DeleteFunc(seen, func(t app.Template) bool { return !in.fits(t.Template) })
	bytes := 0
	for i := range seen {
		all, _ := seen[i].Bytes()
		bytes += all
	}
	return c.List("", "", bytes, func(yield func(any) bool) {
		for i := range seen {
			if !yield(newItem(seen[i].Template)) {
				return
			}
		}
	})
}

func listTags(c *server.Call, _ *struct{}) error {
	return listUsed(c, nil, func(s *v1.TemplateSpec) []string { return s.Tags })
}

func listCategories(c *server.Call, _ *struct{}) error {
	return listUsed(c, []string{v1.CategoryOfficial}, func(s *v1.TemplateSpec) []string { return s.Categories })
}

// listUsed responds with the words of the templates that the caller may read, and the words in always.
func listUsed(c *server.Call, always []string, words func(*v1.TemplateSpec) []string) error {
	seen, err := c.Actions.Templates()
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, word := range always {
		used[word] = true
	}
	bytes := 0
	for i := range seen {
		for _, word := range words(&seen[i].Spec) {
			if !used[word] {
				used[word] = true
				bytes += 2 * len(word)
			}
		}
	}
	return c.List("", "", bytes, func(yield func(any) bool) {
		for _, word := range slices.Sorted(maps.Keys(used)) {
			if !yield(label{word, word}) {
				return
			}
		}
	})
}

type itemIn struct {
	Template string `path:"template"`
}

func getItem(_ context.Context, d *app.Actions, in *itemIn) (*item, error) {
	t, err := d.Template(in.Template)
	if err != nil {
		return nil, err
	}
	out := newItem(t.Template)
	return &out, nil
}

type made struct {
	ID string `json:"id"`
}

type postItemIn struct {
	Body itemData `body:"json"`
}

func postItem(ctx context.Context, d *app.Actions, in *postItemIn) (*made, error) {
	spec := v1.TemplateSpec{}
	if in.Body.Author == nil {
		spec.Author = d.Name()
	}
	if err := in.Body.apply(&spec); err != nil {
		return nil, err
	}
	t, err := d.AddTemplate(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &made{string(t.UID)}, nil
}

type putItemIn struct {
	Template string   `path:"template"`
	Body     itemData `body:"json"`
}

func putItem(c *server.Call) error {
	in := putItemIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if _, err := c.Actions.ChangeTemplate(c.Context(), in.Template, 0, in.Body.change); err != nil {
		return err
	}
	return c.Text("updated")
}

func deleteItem(c *server.Call) error {
	in := itemIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if err := c.Actions.RemoveTemplate(c.Context(), in.Template); err != nil {
		return err
	}
	return c.Text("deleted")
}

// errBoth is the error for an item that is both public and private.
var errBoth = wire.Bad(`an item is public or private: set one of "isPublic" and "isPrivate", or neither, and name groups in "groupList"`)
