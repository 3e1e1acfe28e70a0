package v2

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

func manageRoutes() []server.Route {
	const user, alias = prefix + "/users/{user}", prefix + "/user/{user}"
	made := server.Status(http.StatusCreated)
	put := func(what, rule, summary string, r func(method, path, rule, summary string, o ...server.Option) server.Route) server.Route {
		return r(http.MethodPut, user+"/"+what, rule, summary, made, server.Also(alias+"/"+what), server.Errors("NoUserError", "NoGroupError", "NoVirtualClusterError", "RemoveAdminError", codeWord))
	}
	return []server.Route{
		server.JSON(http.MethodPost, prefix+"/users", "user.manage", "Adds a person; the virtual clusters in the body are names of groups", postUser, made,
			server.Also(prefix+"/user"), server.Errors("ConflictUserError", "NoGroupError")),
		server.JSON(http.MethodDelete, user, "user.manage", "Removes a person; the name stays taken", deleteUser, server.Also(alias), server.Errors("NoUserError", "RemoveAdminError")),
		put("password", "user.change.self", "Sets a password; your own requires the old one", jsonRoute(putPassword, server.Errors("IncorrectPasswordError"))),
		put("email", "user.change.self", "Sets an e-mail address", jsonRoute(putEmail)),
		put("extension", "user.change.self", "Sets keys of the data that clients store with a person", jsonRoute(putExtension)),
		put("admin", "user.manage", "Makes a person an administrator, or revokes that", jsonRoute(putAdmin)),
		put("grouplist", "user.manage", "Sets a person's groups", jsonRoute(putGroups)),
		put("virtualcluster", "user.manage", "Sets the groups of a person that grant one virtual cluster each; other groups stay", jsonRoute(putVCs)),
		put("group", "user.manage", "Adds a person to a group", jsonRoute(joinGroup)),
		server.JSON(http.MethodDelete, user+"/group", "user.manage", "Removes a person from a group; the body names the group", leaveGroup, made, server.Also(alias+"/group"), server.Errors("NoUserError", "RemoveAdminError", codeWord)),
		server.JSON(http.MethodPut, prefix+"/users", "user.manage", "Replaces a person; with \"patch\", changes only the fields in the body", putUser, made, server.Also(prefix+"/user"), server.Errors("NoUserError", "NoGroupError", "NoVirtualClusterError", "RemoveAdminError", codeWord)),
		server.JSON(http.MethodPut, prefix+"/users/me", "user.change.self", "Changes your e-mail address, your password, and the data that clients store for you", putMe, made, server.Also(prefix+"/user/me"), server.Errors("IncorrectPasswordError")),
	}
}

// jsonRoute returns a function that creates a route like server.JSON, with a fixed handler and the additional options in own.
func jsonRoute[In, Out any](h func(context.Context, *app.Actions, *In) (*Out, error), own ...server.Option) func(method, path, rule, summary string, o ...server.Option) server.Route {
	return func(method, path, rule, summary string, o ...server.Option) server.Route {
		return server.JSON(method, path, rule, summary, h, slices.Concat(o, own)...)
	}
}

type postUserIn struct {
	Body struct {
		Username       string                     `json:"username"`
		Password       secret.String              `json:"password"`
		Email          string                     `json:"email"`
		VirtualCluster []string                   `json:"virtualCluster"`
		Admin          bool                       `json:"admin"`
		Extension      map[string]json.RawMessage `json:"extension"`
	} `body:"json"`
}

func postUser(ctx context.Context, d *app.Actions, in *postUserIn) (*message, error) {
	if in.Body.Username == "" || !in.Body.Password.IsSet() {
		return nil, wire.Bad(`"username" and "password" are required`)
	}
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	if err := checkVCs(all, in.Body.VirtualCluster); err != nil {
		return nil, err
	}
	n := app.NewUser{Name: in.Body.Username, Password: in.Body.Password, Email: in.Body.Email, Groups: append([]string{v1.GroupDefault}, in.Body.VirtualCluster...)}
	if in.Body.Admin {
		group, err := d.AdministratorGroup()
		if err != nil {
			return nil, err
		}
		n.Groups = with(n.Groups, group)
	}
	c := app.UserChange{}
	if err := extend(&c, in.Body.Extension); err != nil {
		return nil, err
	}
	if _, err := d.AddUser(ctx, n, false); err != nil {
		return nil, err
	}
	if len(in.Body.Extension) > 0 {
		if err := d.ChangeUser(ctx, n.Name, c); err != nil {
			return nil, err
		}
	}
	return &message{Message: "User is created successfully"}, nil
}

func deleteUser(ctx context.Context, d *app.Actions, in *userIn) (*message, error) {
	return &message{Message: "user is removed successfully"}, d.RemoveUser(ctx, in.User)
}

func change(ctx context.Context, d *app.Actions, name string, c app.UserChange) (*message, error) {
	return &message{Message: "Update user " + name + " successfully"}, d.ChangeUser(ctx, name, c)
}

// changeSpec changes only the spec of a User.
func changeSpec(ctx context.Context, d *app.Actions, name string, do func(*v1.UserSpec)) (*message, error) {
	return change(ctx, d, name, app.UserChange{Spec: func(s *v1.UserSpec) error {
		do(s)
		return nil
	}})
}

type putPasswordIn struct {
	User string `path:"user"`
	Body struct {
		New secret.String `json:"newPassword"`
		Old secret.String `json:"oldPassword"`
	} `body:"json"`
}

func putPassword(ctx context.Context, d *app.Actions, in *putPasswordIn) (*message, error) {
	if !in.Body.New.IsSet() {
		return nil, wire.Bad(`"newPassword" is required`)
	}
	return &message{Message: "update user password successfully"}, d.SetPassword(ctx, in.User, in.Body.Old, in.Body.New)
}

type putEmailIn struct {
	User string `path:"user"`
	Body struct {
		Email *string `json:"email"`
	} `body:"json"`
}

func putEmail(ctx context.Context, d *app.Actions, in *putEmailIn) (*message, error) {
	if in.Body.Email == nil {
		return nil, wire.Bad(`"email" is required`)
	}
	return changeSpec(ctx, d, in.User, func(s *v1.UserSpec) { s.Email = *in.Body.Email })
}

type putExtensionIn struct {
	User string `path:"user"`
	Body struct {
		Extension map[string]json.RawMessage `json:"extension"`
	} `body:"json"`
}

func putExtension(ctx context.Context, d *app.Actions, in *putExtensionIn) (*message, error) {
	if in.Body.Extension == nil {
		return nil, wire.Bad(`"extension" is required`)
	}
	c := app.UserChange{}
	if err := extend(&c, in.Body.Extension); err != nil {
		return nil, err
	}
	return change(ctx, d, in.User, c)
}

// keySSHKeys is the key for public keys in a person's extension. The User contains the keys.
const keySSHKeys = "sshKeys"

// extend adds an extension to the changes of a person. It moves public keys from the extension to the User, because they aren't secret.
func extend(c *app.UserChange, extension object) error {
	c.Extension = maps.Clone(extension)
	text, there := extension[keySSHKeys]
	if !there {
		return nil
	}
	delete(c.Extension, keySSHKeys)
	var keys []v1.SSHKey
	if len(text) > 0 && json.Unmarshal(text, &keys) != nil {
		return wire.Bad(`"sshKeys" must be a list of {title, value}`)
	}
	before := c.Spec
	c.Spec = func(s *v1.UserSpec) error {
		s.SSHKeys = keys
		if before == nil {
			return nil
		}
		return before(s)
	}
	return nil
}

type putAdminIn struct {
	User string `path:"user"`
	Body struct {
		Admin *bool `json:"admin"`
	} `body:"json"`
}

func putAdmin(ctx context.Context, d *app.Actions, in *putAdminIn) (*message, error) {
	if in.Body.Admin == nil {
		return nil, wire.Bad(`"admin" is required`)
	}
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	return change(ctx, d, in.User, app.UserChange{Spec: func(s *v1.UserSpec) error { return setAdmin(d, s, all, *in.Body.Admin) }})
}

// setAdmin adds a person to a group whose members are administrators, or removes the person from all such groups.
func setAdmin(d *app.Actions, s *v1.UserSpec, all []app.Group, admin bool) error {
	makes := func(name string) bool {
		return slices.ContainsFunc(all, func(g app.Group) bool { return g.Spec.Name == name && g.Spec.Administrator })
	}
	if !admin {
		if err := stays(d, s.Name, all, func(g *v1.GroupSpec) bool { return g.Administrator }); err != nil {
			return err
		}
		s.Groups = slices.DeleteFunc(slices.Clone(s.Groups), makes)
		return nil
	}
	if slices.ContainsFunc(s.Groups, makes) {
		return nil
	}
	group, err := d.AdministratorGroup()
	if err == nil {
		s.Groups = with(s.Groups, group)
	}
	return err
}

type putGroupsIn struct {
	User string `path:"user"`
	Body struct {
		Groups []string `json:"grouplist"`
	} `body:"json"`
}

func putGroups(ctx context.Context, d *app.Actions, in *putGroupsIn) (*message, error) {
	if in.Body.Groups == nil {
		return nil, wire.Bad(`"grouplist" is required`)
	}
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	return change(ctx, d, in.User, app.UserChange{Spec: func(s *v1.UserSpec) error {
		groups, err := besideWord(d, s, all, in.Body.Groups, func(*v1.GroupSpec) bool { return true })
		s.Groups = groups
		return err
	}})
}

type putVCsIn struct {
	User string `path:"user"`
	Body struct {
		VCs []string `json:"virtualCluster"`
	} `body:"json"`
}

func putVCs(ctx context.Context, d *app.Actions, in *putVCsIn) (*message, error) {
	if in.Body.VCs == nil {
		return nil, wire.Bad(`"virtualCluster" is required`)
	}
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	if err := checkVCs(all, in.Body.VCs); err != nil {
		return nil, err
	}
	return change(ctx, d, in.User, app.UserChange{Spec: func(s *v1.UserSpec) error { return setVCs(d, s, all, in.Body.VCs) }})
}

type groupOfIn struct {
	User string `path:"user"`
	Body struct {
		Group string `json:"groupname"`
	} `body:"json"`
}

func joinGroup(ctx context.Context, d *app.Actions, in *groupOfIn) (*message, error) {
	if in.Body.Group == "" {
		return nil, wire.Bad(`"groupname" is required`)
	}
	return changeSpec(ctx, d, in.User, func(s *v1.UserSpec) { s.Groups = with(s.Groups, in.Body.Group) })
}

func leaveGroup(ctx context.Context, d *app.Actions, in *groupOfIn) (*message, error) {
	if in.Body.Group == "" {
		return nil, wire.Bad(`"groupname" is required`)
	}
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	return change(ctx, d, in.User, app.UserChange{Spec: func(s *v1.UserSpec) error {
		s.Groups = without(s.Groups, in.Body.Group)
		return stays(d, s.Name, all, func(g *v1.GroupSpec) bool { return g.Name == in.Body.Group })
	}})
}
