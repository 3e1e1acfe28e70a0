package v2

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

type groupData struct {
	Name        string                     `json:"groupname"`
	Description *string                    `json:"description"`
	External    *string                    `json:"externalName"`
	Extension   map[string]json.RawMessage `json:"extension"`
}

// apply applies a client's changes to a group. If patch is true, missing keys of the extension don't change.
func (g *groupData) apply(spec *v1.GroupSpec, patch bool) error {
	if g.Description != nil {
		spec.Description = *g.Description
	}
	if g.External != nil {
		if err := setExternalName(spec, *g.External); err != nil {
			return err
		}
	}
	if g.Extension == nil {
		return nil
	}
	return mergeExtension(spec, g.Extension, patch)
}

func mergeExtension(spec *v1.GroupSpec, change object, patch bool) error {
	have := object{}
	if patch {
		var err error
		if have, err = extensionOf(spec); err != nil {
			return err
		}
	}
	merge(have, change)
	return setExtension(spec, have)
}

type postGroupIn struct {
	Body groupData `body:"json"`
}

func postGroup(ctx context.Context, d *app.Actions, in *postGroupIn) (*message, error) {
	if in.Body.Name == "" {
		return nil, wire.Bad(`"groupname" is required`)
	}
	_, err := d.NewGroup(ctx, in.Body.Name, func(spec *v1.GroupSpec) error { return in.Body.apply(spec, true) })
	return &message{Message: "group is created successfully"}, err
}

// putGroupIn is the body of a request to change a group. The group is in "data". The JavaScript SDK sends the group as the body itself.
type putGroupIn struct {
	Body struct {
		Patch bool       `json:"patch"`
		Data  *groupData `json:"data"`
		groupData
	} `body:"json"`
}

func putGroup(ctx context.Context, d *app.Actions, in *putGroupIn) (*message, error) {
	g := in.Body.Data
	if g == nil {
		g = &in.Body.groupData
	}
	if g.Name == "" {
		return nil, wire.Bad(`"groupname" is required`)
	}
	if !in.Body.Patch {
		for key, there := range map[string]bool{"description": g.Description != nil, "externalName": g.External != nil, "extension": g.Extension != nil} {
			if !there {
				return nil, wire.Bad(fmt.Sprintf(`%q is required; with "patch": true, missing fields stay as they are`, key))
			}
		}
	}
	return changeGroup(ctx, d, g.Name, func(spec *v1.GroupSpec) error { return g.apply(spec, in.Body.Patch) })
}

func changeGroup(ctx context.Context, d *app.Actions, name string, change func(*v1.GroupSpec) error) (*message, error) {
	_, err := d.ChangeGroup(ctx, name, change)
	return &message{Message: "update group " + name + " successfully"}, err
}

type putDescriptionIn struct {
	Group string `path:"group"`
	Body  struct {
		Description *string `json:"description"`
	} `body:"json"`
}

func putDescription(ctx context.Context, d *app.Actions, in *putDescriptionIn) (*message, error) {
	if in.Body.Description == nil {
		return nil, wire.Bad(`"description" is required`)
	}
	return changeGroup(ctx, d, in.Group, func(spec *v1.GroupSpec) error {
		spec.Description = *in.Body.Description
		return nil
	})
}

type putExternalNameIn struct {
	Group string `path:"group"`
	Body  struct {
		External *string `json:"externalName"`
	} `body:"json"`
}

func putExternalName(ctx context.Context, d *app.Actions, in *putExternalNameIn) (*message, error) {
	if in.Body.External == nil {
		return nil, wire.Bad(`"externalName" is required`)
	}
	return changeGroup(ctx, d, in.Group, func(spec *v1.GroupSpec) error { return setExternalName(spec, *in.Body.External) })
}

type putGroupExtensionIn struct {
	Group string `path:"group"`
	Body  struct {
		Extension map[string]json.RawMessage `json:"extension"`
	} `body:"json"`
}

func putGroupExtension(ctx context.Context, d *app.Actions, in *putGroupExtensionIn) (*message, error) {
	if in.Body.Extension == nil {
		return nil, wire.Bad(`"extension" is required`)
	}
	return changeGroup(ctx, d, in.Group, func(spec *v1.GroupSpec) error { return mergeExtension(spec, in.Body.Extension, true) })
}

type putGroupAttributeIn struct {
	Group string `path:"group"`
	Path  string `path:"path"`
	Body  struct {
		Data json.RawMessage `json:"data"`
	} `body:"json"`
}

func putGroupAttribute(ctx context.Context, d *app.Actions, in *putGroupAttributeIn) (*message, error) {
	if in.Body.Data == nil {
		return nil, wire.Bad(`"data" is required`)
	}
	path := strings.Split(in.Path, "/")
	return changeGroup(ctx, d, in.Group, func(spec *v1.GroupSpec) error {
		extension, err := extensionOf(spec)
		if err != nil {
			return err
		}
		put(extension, path, in.Body.Data)
		return setExtension(spec, extension)
	})
}
