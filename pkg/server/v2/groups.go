package v2

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

func groupRoutes() []server.Route {
	const group, alias = prefix + "/groups/{group}", prefix + "/group/{group}"
	made, none := server.Status(http.StatusCreated), server.Errors("NoGroupError")
	return []server.Route{
		server.JSON(http.MethodGet, prefix+"/groups", "group.read", "Lists groups; only members and administrators see more than names and descriptions", groups, server.Also(prefix+"/group")),
		server.JSON(http.MethodGet, group, "group.read", "Returns a group", getGroup, server.Also(alias), none),
		server.JSON(http.MethodGet, group+"/userlist", "group.members", "Lists the members of a group; the list is empty if the group doesn't exist", members,
			server.Also(alias+"/userlist")),
		server.JSON(http.MethodPost, prefix+"/groups", "group.manage", "Creates a group", postGroup, made, server.Also(prefix+"/group"), server.Errors("ConflictGroupError")),
		server.JSON(http.MethodPut, prefix+"/groups", "group.manage", "Replaces a group; with \"patch\", changes only the fields in the body", putGroup, made, server.Also(prefix+"/group"), none),
		server.JSON(http.MethodDelete, group, "group.manage", "Deletes a group", deleteGroup, server.Also(alias), none),
		server.JSON(http.MethodPut, group+"/description", "group.manage", "Sets a group's description", putDescription, made, server.Also(alias+"/description"), none),
		server.JSON(http.MethodPut, group+"/externalname", "group.manage", "Sets the group of a sign-in provider whose members are in a group", putExternalName, made, server.Also(alias+"/externalname"), none),
		server.JSON(http.MethodPut, group+"/extension", "group.manage", "Sets keys of a group's extension", putGroupExtension, made, server.Also(alias+"/extension"), none, server.Errors("RemoveAdminError")),
		server.JSON(http.MethodPut, group+"/extension/{path...}", "group.manage", "Sets the value at a path of a group's extension", putGroupAttribute, made, server.Also(alias+"/extension/{path...}"), none, server.Errors("RemoveAdminError")),
	}
}

// group is a group in OpenPAI's format.
type group struct {
	Name        string                     `json:"groupname"`
	Description string                     `json:"description"`
	External    string                     `json:"externalName"`
	Extension   map[string]json.RawMessage `json:"extension"`
}

func newGroup(g *app.Group) (group, error) {
	out := group{Name: g.Spec.Name, Description: g.Spec.Description, Extension: map[string]json.RawMessage{}}
	if !g.Whole {
		return out, nil
	}
	out.External = externalName(&g.Spec)
	var err error
	out.Extension, err = extensionOf(&g.Spec)
	return out, err
}

func groups(_ context.Context, d *app.Actions, _ *struct{}) (*[]group, error) {
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	out := []group{}
	for i := range all {
		g, err := newGroup(&all[i])
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return &out, nil
}

type groupIn struct {
	Group string `path:"group"`
}

func getGroup(_ context.Context, d *app.Actions, in *groupIn) (*group, error) {
	g, err := d.Group(in.Group)
	if err != nil {
		return nil, err
	}
	out, err := newGroup(g)
	return &out, err
}

// member is a member of a group, in the format that OpenPAI's alert handler reads.
type member struct {
	Username string `json:"username"`
	Admin    bool   `json:"clusterAdmin"`
}

func members(_ context.Context, d *app.Actions, in *groupIn) (*[]member, error) {
	all, err := d.Members(in.Group)
	if err != nil {
		return nil, err
	}
	out := []member{}
	for _, p := range all {
		out = append(out, member{p.Name, p.Grants.Administrator})
	}
	return &out, nil
}

func deleteGroup(ctx context.Context, d *app.Actions, in *groupIn) (*message, error) {
	return &message{Message: "group is removed successfully"}, d.DeleteGroup(ctx, in.Group)
}
