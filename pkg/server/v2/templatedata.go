package v2

import (
	"encoding/json"
	"time"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/app"
)

// itemData is an item in a client's request. Pages send all fields that they have read, so the server ignores the fields that only the server sets.
type itemData struct {
	Name        *string   `json:"name"`
	Author      *string   `json:"author"`
	Type        *string   `json:"type"`
	Public      *bool     `json:"isPublic"`
	Private     *bool     `json:"isPrivate"`
	Groups      *[]string `json:"groupList"`
	DataType    *string   `json:"dataType"`
	DataURL     *string   `json:"dataUrl"`
	Categories  *[]string `json:"categories"`
	Tags        *[]string `json:"tags"`
	Summary     *string   `json:"summary"`
	Description *string   `json:"description"`
	Protocol    *string   `json:"protocol"`
	// Updated is the time of the version that the client has changed. Without this time, the change applies to any version.
	Updated *time.Time `json:"updatedAt"`

	ID             json.RawMessage `json:"id"`
	Source         json.RawMessage `json:"source"`
	UseBlob        json.RawMessage `json:"useBlob"`
	Uses           json.RawMessage `json:"useNumber"`
	Stars          json.RawMessage `json:"starNumber"`
	Status         json.RawMessage `json:"status"`
	Created        json.RawMessage `json:"createdAt"`
	ItemTags       json.RawMessage `json:"ItemTags"`
	ItemCategories json.RawMessage `json:"ItemCategories"`
}

// change applies a client's changes to an item. It returns app.ErrChanged if the item has changed since the client read it.
func (in *itemData) change(t *v1.Template) error {
	if in.Updated != nil && !in.Updated.Truncate(time.Millisecond).Equal(t.Updated().Truncate(time.Millisecond)) {
		return app.ErrChanged
	}
	return in.apply(&t.Spec)
}

// apply sets the template fields that the request contains. Other fields don't change.
func (in *itemData) apply(s *v1.TemplateSpec) error {
	for from, to := range map[*string]*string{
		in.Name: &s.Name, in.Author: &s.Author, in.Type: &s.Type, in.DataType: &s.DataType, in.DataURL: &s.DataURL,
		in.Summary: &s.Summary, in.Description: &s.Description, in.Protocol: &s.Job,
	} {
		if from != nil {
			*to = *from
		}
	}
	for from, to := range map[*[]string]*[]string{in.Groups: &s.Groups, in.Categories: &s.Categories, in.Tags: &s.Tags} {
		if from != nil {
			*to = *from
		}
	}
	return in.share(s)
}

// share sets who may read an item. It ignores the list of groups if the item is public or private, because pages send a list even then.
func (in *itemData) share(s *v1.TemplateSpec) error {
	public, private := in.Public != nil && *in.Public, in.Private != nil && *in.Private
	switch {
	case public && private:
		return errBoth
	case public:
		s.Public, s.Groups = true, nil
	case private:
		s.Public, s.Groups = false, nil
	case in.Public != nil:
		s.Public = false
	}
	return nil
}
