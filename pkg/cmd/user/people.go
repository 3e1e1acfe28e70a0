package user

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/way"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// People is who may use a cluster, as the commands user and group need it.
type People interface {
	Users(ctx context.Context) ([]User, error)
	User(ctx context.Context, name string) (*User, error)
	// Check says what is wrong with several new people, together and before any is added.
	Check(ctx context.Context, users []people.NewUser) []error
	Add(ctx context.Context, n people.NewUser) (*User, error)
	Update(ctx context.Context, name string, change func(*v1.UserSpec) error) (*User, error)
	// SetPassword needs the old password if users set their own.
	SetPassword(ctx context.Context, name string, old, p secret.String) error
	// Me is the user who has signed in, or "" with a kubeconfig.
	Me(ctx context.Context) (string, error)
	Remove(ctx context.Context, name string) error

	Groups(ctx context.Context) ([]Group, error)
	Group(ctx context.Context, name string) (*Group, error)
	// ChangeGroup changes a group. If isNew is set, it makes the group, which must not exist.
	ChangeGroup(ctx context.Context, name string, isNew bool, change func(*v1.GroupSpec) error) (*Group, error)
	DeleteGroup(ctx context.Context, name string) error

	// Explain adds advice for the user to an error.
	Explain(err error) error
}

// What -o json prints.
type (
	// User is a person.
	User = api.User
	// Group is a group.
	Group = api.Group
)

// newUser is how a person is printed.
func newUser(p *people.Person) *User {
	u := &User{
		Name: p.Name, Email: p.User.Spec.Email, DisplayName: p.User.Spec.DisplayName, Groups: orNone(p.Groups), Administrator: p.Grants.Administrator,
		Disabled: p.Disabled, AllVCs: p.Grants.AllVCs, VCs: []v1.VCGrant{}, Storages: orNone(p.Grants.Storages), Pages: orNone(slices.Sorted(maps.Keys(p.Grants.Pages))),
		Identities: p.User.Spec.Identities, SSHKeys: p.User.Spec.SSHKeys, Created: p.User.CreationTimestamp.Time,
	}
	for _, name := range slices.Sorted(maps.Keys(p.Grants.VCs)) {
		g := p.Grants.VCs[name]
		u.VCs = append(u.VCs, v1.VCGrant{Name: name, SeeJobs: g.SeeJobs, MaxPriority: g.MaxPriority, HostNetwork: g.HostNetwork})
	}
	if at := p.User.Status.LastSignIn; at != nil {
		u.LastSignIn = &at.Time
	}
	return u
}

func orNone(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// direct is people by a kubeconfig: past the server, which needn't run.
type direct struct {
	*people.Directory
	cluster  *kube.Cluster
	prepared bool
}

// Way says how to reach a cluster: by a kubeconfig, or by its server if the user has signed in.
type Way struct {
	Kube   kube.Options
	Server string
}

// AddFlags adds the flags that choose it.
func (w *Way) AddFlags(f *cmdutil.Factory, cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &w.Kube)
	way.AddFlag(f, cmd, &w.Server)
}

// Open connects to the users of a cluster. It doesn't send a request yet.
func Open(f *cmdutil.Factory, w Way) (People, error) {
	signed, err := way.Choose(f, w.Kube, w.Server)
	if err != nil {
		return nil, err
	}
	if signed != nil {
		return &server{signed.Server}, nil
	}
	c, d, err := OpenDirectory(w.Kube)
	if err != nil {
		return nil, err
	}
	return &direct{Directory: d, cluster: c}, nil
}

// OpenDirectory connects to the users of a cluster, by its kubeconfig. It doesn't send a request yet.
func OpenDirectory(o kube.Options) (*kube.Cluster, *people.Directory, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, nil, err
	}
	jobs, err := job.New(c)
	if err != nil {
		return nil, nil, err
	}
	d, err := people.Open(c.Config, people.Options{Owns: jobs.Owns})
	return c, d, err
}

// Explain implements People.
func (d *direct) Explain(err error) error { return d.cluster.Explain(err) }

// Me implements People.
func (*direct) Me(context.Context) (string, error) { return "", nil }

// SetPassword implements People.
func (d *direct) SetPassword(ctx context.Context, name string, _, p secret.String) error {
	return d.Directory.SetPassword(ctx, name, p)
}

// known reads the names that groups may grant.
func (d *direct) known(ctx context.Context) (*people.Known, error) {
	jobs, err := job.New(d.cluster)
	if err != nil {
		return nil, err
	}
	vcs, storages, err := jobs.Grantable(ctx)
	return &people.Known{VirtualClusters: vcs, Storages: storages}, err
}

// Users implements People.
func (d *direct) Users(ctx context.Context) ([]User, error) {
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	known, err := d.known(ctx)
	if err != nil {
		return nil, err
	}
	out := []User{}
	for _, p := range d.Directory.Users() {
		out = append(out, *newUser(existing(known, p)))
	}
	return out, nil
}

// User implements People.
func (d *direct) User(ctx context.Context, name string) (*User, error) {
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	p, err := d.Person(name)
	if err != nil {
		return nil, err
	}
	known, err := d.known(ctx)
	if err != nil {
		return nil, err
	}
	return newUser(existing(known, p)), nil
}

// existing returns a person without grants of deleted things.
func existing(known *people.Known, p *people.Person) *people.Person {
	out := *p
	out.Grants = known.Less(p.Grants)
	return &out
}

func printed(p *people.Person, err error) (*User, error) {
	if err != nil {
		return nil, err
	}
	return newUser(p), nil
}

// Check also makes the objects that users need, before the first user.
func (d *direct) Check(ctx context.Context, users []people.NewUser) []error {
	out := make([]error, len(users))
	err := d.prepare(ctx)
	if err == nil {
		err = d.Load(ctx)
	}
	if err != nil {
		return []error{err}
	}
	for i := range users {
		out[i] = d.CheckNew(users[i])
	}
	return out
}

// Add implements People.
func (d *direct) Add(ctx context.Context, n people.NewUser) (*User, error) {
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	return printed(d.Directory.Add(ctx, n))
}

// prepare makes the objects that users need, once.
func (d *direct) prepare(ctx context.Context) error {
	if d.prepared {
		return nil
	}
	err := d.Prepare(ctx)
	d.prepared = err == nil
	return err
}

// Update implements People.
func (d *direct) Update(ctx context.Context, name string, change func(*v1.UserSpec) error) (*User, error) {
	return printed(d.Directory.Update(ctx, name, change))
}

// Remove implements People.
func (d *direct) Remove(ctx context.Context, name string) error {
	jobs, err := job.New(d.cluster)
	if err != nil {
		return err
	}
	if err := d.Load(ctx); err != nil {
		return err
	}
	templates, err := template.Open(d.cluster.Config, template.Options{})
	if err != nil {
		return err
	}
	_, err = people.RemoveWith(ctx, d.Directory, name, jobs.StopAll, templates.RemoveOf)
	return err
}

// Groups implements People.
func (d *direct) Groups(ctx context.Context) ([]Group, error) {
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	out := []Group{}
	for _, g := range d.Directory.Groups() {
		out = append(out, *d.group(g))
	}
	return out, nil
}

func (d *direct) group(g *v1.Group) *Group {
	return &Group{GroupSpec: g.Spec, Members: orNone(d.Members(g.Spec.Name)), Created: g.CreationTimestamp.Time}
}

// Group implements People.
func (d *direct) Group(ctx context.Context, name string) (*Group, error) {
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	g, err := d.Directory.Group(name)
	if err != nil {
		return nil, err
	}
	return d.group(g), nil
}

// ChangeGroup implements People.
func (d *direct) ChangeGroup(ctx context.Context, name string, isNew bool, change func(*v1.GroupSpec) error) (*Group, error) {
	if isNew {
		if err := d.prepare(ctx); err != nil {
			return nil, err
		}
	}
	g, err := d.Directory.ChangeGroup(ctx, name, isNew, func(g *v1.GroupSpec) error {
		was := g.DeepCopy()
		if err := change(g); err != nil || !people.Grants(was, g) {
			return err
		}
		known, err := d.known(ctx)
		if err != nil {
			return err
		}
		return known.Check(was, g)
	})
	if err != nil {
		return nil, err
	}
	return d.group(g), nil
}
