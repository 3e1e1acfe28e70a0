package v2

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/desk"
)

func userRoutes() []server.Route {
	return []server.Route{
		server.JSON(http.MethodGet, prefix+"/users", "user.list", "Lists people: to others than administrators names and e-mail addresses", users, server.Also(prefix+"/user")),
		server.JSON(http.MethodGet, prefix+"/users/{user}", "user.read", "Tells about a person", getUser,
			server.Also(prefix+"/user/{user}", old+"/user/{user}"), server.Errors("NoUserError")),
		server.JSON(http.MethodGet, prefix+"/groups", "group.read", "Lists groups: to others than members and administrators names and descriptions", groups, server.Also(prefix+"/group")),
		server.JSON(http.MethodGet, prefix+"/groups/{group}", "group.read", "Tells about a group", getGroup, server.Also(prefix+"/group/{group}"), server.Errors("NoGroupError")),
		server.JSON(http.MethodGet, prefix+"/groups/{group}/userlist", "group.members", "Lists who is in a group; nothing for a group that isn't there", members,
			server.Also(prefix+"/group/{group}/userlist")),
	}
}

// person is a user in OpenPAI's words. What isn't told is empty.
type person struct {
	Username       string                     `json:"username"`
	Email          string                     `json:"email"`
	Groups         []string                   `json:"grouplist"`
	Extension      map[string]json.RawMessage `json:"extension"`
	Admin          bool                       `json:"admin"`
	VirtualCluster []string                   `json:"virtualCluster"`
	Storages       []string                   `json:"storageConfig"`
}

func newPerson(p *desk.Person) person {
	out := person{
		Username: p.Name, Email: p.User.Spec.Email, Groups: []string{}, Extension: map[string]json.RawMessage{}, VirtualCluster: []string{}, Storages: []string{},
	}
	if !p.View.Whole {
		return out
	}
	out.Groups, out.Storages = append(out.Groups, p.Groups...), append(out.Storages, p.Grants.Storages...)
	out.VirtualCluster = append(out.VirtualCluster, slices.Sorted(maps.Keys(p.Grants.VCs))...)
	out.Admin = p.Grants.Administrator
	if len(p.User.Spec.SSHKeys) > 0 {
		if keys, err := json.Marshal(p.User.Spec.SSHKeys); err == nil {
			out.Extension["sshKeys"] = keys
		}
	}
	return out
}

// users leaves out what clients stored with each person: a list would need one read for each.
func users(_ context.Context, d *desk.Desk, _ *struct{}) (*[]person, error) {
	all, err := d.Users()
	if err != nil {
		return nil, err
	}
	out := []person{}
	for i := range all {
		out = append(out, newPerson(&all[i]))
	}
	return &out, nil
}

type userIn struct {
	User string `path:"user"`
}

func getUser(ctx context.Context, d *desk.Desk, in *userIn) (*person, error) {
	p, err := d.User(in.User)
	if err != nil {
		return nil, err
	}
	out := newPerson(p)
	if p.View.Extension {
		stored, err := d.Extension(ctx, in.User)
		if err != nil {
			return nil, err
		}
		for key, value := range stored {
			if _, there := out.Extension[key]; !there {
				out.Extension[key] = value
			}
		}
	}
	// The portal offers these where a job is submitted. An administrator may use all, which the scheduler knows.
	if p.View.Whole && (p.Grants.Administrator || p.Grants.AllVCs) && p.Name == d.Name() {
		if all, err := d.VirtualClusters(ctx); err == nil {
			out.VirtualCluster = []string{}
			for i := range all.Items {
				out.VirtualCluster = append(out.VirtualCluster, all.Items[i].Name)
			}
			slices.Sort(out.VirtualCluster)
		}
	}
	return &out, nil
}

// group is a group in OpenPAI's words.
type group struct {
	Name        string                     `json:"groupname"`
	Description string                     `json:"description"`
	External    string                     `json:"externalName"`
	Extension   map[string]json.RawMessage `json:"extension"`
}

// acls is what a group grants.
type acls struct {
	Admin           bool     `json:"admin"`
	VirtualClusters []string `json:"virtualClusters"`
	Storages        []string `json:"storageConfigs"`
}

func newGroup(g *desk.Group) (group, error) {
	out := group{Name: g.Spec.Name, Description: g.Spec.Description, Extension: map[string]json.RawMessage{}}
	if !g.Whole {
		return out, nil
	}
	if g.Spec.Extension != nil && len(g.Spec.Extension.Raw) > 0 {
		if err := json.Unmarshal(g.Spec.Extension.Raw, &out.Extension); err != nil || out.Extension == nil {
			out.Extension = map[string]json.RawMessage{} // it was no object
		}
	}
	if len(g.Spec.External) > 0 {
		out.External = g.Spec.External[0].Name
	}
	text, err := json.Marshal(newACLs(&g.Spec))
	out.Extension["acls"] = text
	return out, err
}

func newACLs(g *v1.GroupSpec) acls {
	a := acls{Admin: g.Administrator, VirtualClusters: []string{}, Storages: append([]string{}, g.Storages...)}
	for _, vc := range g.VirtualClusters {
		a.VirtualClusters = append(a.VirtualClusters, vc.Name)
	}
	return a
}

func groups(_ context.Context, d *desk.Desk, _ *struct{}) (*[]group, error) {
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

func getGroup(_ context.Context, d *desk.Desk, in *groupIn) (*group, error) {
	g, err := d.Group(in.Group)
	if err != nil {
		return nil, err
	}
	out, err := newGroup(g)
	return &out, err
}

// member is one of a group, with the word that OpenPAI's alert handler reads.
type member struct {
	Username string `json:"username"`
	Admin    bool   `json:"clusterAdmin"`
}

func members(_ context.Context, d *desk.Desk, in *groupIn) (*[]member, error) {
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
