package v2

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

func userRoutes() []server.Route {
	return []server.Route{
		server.JSON(http.MethodGet, prefix+"/users", "user.list", "Lists people; only administrators see more than names and e-mail addresses", users, server.Also(prefix+"/user")),
		server.JSON(http.MethodGet, prefix+"/users/{user}", "user.read", "Returns a person", getUser,
			server.Also(prefix+"/user/{user}", old+"/user/{user}"), server.Errors("NoUserError")),
	}
}

// person is a person in OpenPAI's format. Fields that the caller may not read are empty.
type person struct {
	Username       string                     `json:"username"`
	Email          string                     `json:"email"`
	Groups         []string                   `json:"grouplist"`
	Extension      map[string]json.RawMessage `json:"extension"`
	Admin          bool                       `json:"admin"`
	VirtualCluster []string                   `json:"virtualCluster"`
	Storages       []string                   `json:"storageConfig"`
}

func newPerson(p *app.Person, existing func(rules.Grants) rules.Grants) person {
	out := person{
		Username: p.Name, Email: p.User.Spec.Email, Groups: []string{}, Extension: map[string]json.RawMessage{}, VirtualCluster: []string{}, Storages: []string{},
	}
	if !p.View.Whole {
		return out
	}
	granted := existing(p.Grants)
	out.Groups, out.Storages = append(out.Groups, p.Groups...), append(out.Storages, granted.Storages...)
	out.VirtualCluster = append(out.VirtualCluster, slices.Sorted(maps.Keys(granted.VCs))...)
	out.Admin = p.Grants.Administrator
	if len(p.User.Spec.SSHKeys) > 0 {
		if keys, err := json.Marshal(p.User.Spec.SSHKeys); err == nil {
			out.Extension["sshKeys"] = keys
		}
	}
	return out
}

// users lists all people. It omits their extensions, because each extension would need a separate read.
func users(ctx context.Context, d *app.Actions, _ *struct{}) (*[]person, error) {
	all, err := d.Users()
	if err != nil {
		return nil, err
	}
	out, vcs, existing := []person{}, allVCs(ctx, d), d.Existing(ctx)
	for i := range all {
		p := newPerson(&all[i], existing)
		p.mayUse(&all[i], vcs)
		out = append(out, p)
	}
	return &out, nil
}

// mayUse lists all existing virtual clusters for a person who may use all of them. The portal offers the listed virtual clusters for submissions.
func (p *person) mayUse(who *app.Person, all func() []string) {
	if who.View.Whole && (who.Grants.Administrator || who.Grants.AllVCs) {
		if names := all(); names != nil {
			p.VirtualCluster = names
		}
	}
}

// vcTime limits how long a request waits for an optional response of the scheduler.
const vcTime = 3 * time.Second

// allVCs returns a function that returns the names of all virtual clusters that the caller may use. The function reads the names at most once. It
// returns nil if the scheduler doesn't respond.
func allVCs(ctx context.Context, d *app.Actions) func() []string {
	return sync.OnceValue(func() []string {
		ctx, cancel := context.WithTimeout(ctx, vcTime)
		defer cancel()
		all, err := scheduled(ctx, d)
		if err != nil {
			return nil
		}
		out := []string{}
		for i := range all.Items {
			out = append(out, all.Items[i].Name)
		}
		slices.Sort(out)
		return out
	})
}

type userIn struct {
	User string `path:"user"`
}

func getUser(ctx context.Context, d *app.Actions, in *userIn) (*person, error) {
	p, err := d.User(in.User)
	if err != nil {
		return nil, err
	}
	out := newPerson(p, d.Existing(ctx))
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
	out.mayUse(p, allVCs(ctx, d))
	return &out, nil
}
