package people

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube/watch"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Directory holds users and groups in memory. It watches them after Run, or reads them once with Load. Methods that only return users and groups send
// no requests to the API server.
type Directory struct {
	o      Options
	config *rest.Config
	api    dynamic.Interface
	core   kubernetes.Interface
	users  *watch.Store[*v1.User]
	groups *watch.Store[*v1.Group]

	now     atomic.Pointer[snapshot] // computed from the stores; if these have changed since, it is computed again
	making  sync.Mutex
	changes changes
	revoked hooks
	alone   sync.Mutex // only one change at a time waits for the Lease
}

// Options configure a Directory.
type Options struct {
	Log *slog.Logger // nil discards the log
	// Owns reports whether the name owns jobs, even if the person doesn't exist. It is nil if the jobs can't be queried.
	Owns func(ctx context.Context, name string) (bool, error)
}

// Open returns a Directory for a cluster. It sends no requests.
func Open(config *rest.Config, o Options) (*Directory, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	watching, err := watch.Client(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	d := &Directory{o: o, config: config, api: api, core: core}
	d.users = watch.New(watch.Options[*unstructured.Unstructured, *v1.User]{
		Name: "users", Source: watch.From(watching.Resource(v1.Users), everything), Reads: watch.From(api.Resource(v1.Users), everything), Keep: decodeUser,
		Changed: reported[*v1.User](func(object string) { d.changes.tell(Change{User: nameOf(object)}) }), Confirm: true, Log: o.Log,
	})
	d.groups = watch.New(watch.Options[*unstructured.Unstructured, *v1.Group]{
		Name: "groups", Source: watch.From(watching.Resource(v1.Groups), everything), Reads: watch.From(api.Resource(v1.Groups), everything), Keep: decodeGroup,
		Changed: reported[*v1.Group](func(object string) { d.changes.tell(Change{Group: nameOf(object)}) }), Confirm: true, Log: o.Log,
	})
	return d, nil
}

var everything = metav1.ListOptions{}

// reported returns a function that calls tell for each changed object. After a new list it calls tell with "", because any object may have changed.
func reported[T any](tell func(object string)) func([]watch.Change[T], string) {
	return func(changes []watch.Change[T], list string) {
		if list != "" {
			tell("")
			return
		}
		for i := range changes {
			tell(changes[i].Key)
		}
	}
}

func nameOf(object string) string {
	name, _ := v1.NameOf(object)
	return name
}

// decodeUser decodes a User. It returns an error if the object's name doesn't match the person's name, because such an object could impersonate
// another person.
func decodeUser(u *unstructured.Unstructured) (*v1.User, error) {
	out := &v1.User{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	return out, belongs(out.Name, out.Spec.Name)
}

func decodeGroup(u *unstructured.Unstructured) (*v1.Group, error) {
	out := &v1.Group{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	return out, belongs(out.Name, out.Spec.Name)
}

func belongs(object, name string) error {
	switch {
	case !v1.ValidName(name):
		return fmt.Errorf("spec.name: %q can't be a name", name)
	case v1.ObjectName(name) != object:
		return fmt.Errorf("spec.name: the object of %s is called %s", name, v1.ObjectName(name))
	}
	return nil
}

// Load reads all users and groups once, for commands that don't need a watch.
func (d *Directory) Load(ctx context.Context) error {
	if err := d.users.Load(ctx); err != nil {
		return explain(err)
	}
	return explain(d.groups.Load(ctx))
}

// Run watches users and groups until ctx ends.
func (d *Directory) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { d.users.Run(ctx) })
	both.Go(func() { d.groups.Run(ctx) })
	both.Wait()
	return nil
}

// Fresh returns ErrStale if the watches weren't confirmed within StaleAfter, otherwise nil. The result is meaningful only while Run runs.
func (d *Directory) Fresh() error {
	if time.Since(d.users.Confirmed()) > StaleAfter || time.Since(d.groups.Confirmed()) > StaleAfter {
		return ErrStale
	}
	return nil
}

// Person returns the person with the given name, or ErrNoUser if the person doesn't exist or was removed.
func (d *Directory) Person(name string) (*Person, error) {
	if p := d.snapshot().people[name]; p != nil {
		return p, nil
	}
	return nil, noUser(name)
}

// ByUID returns the person with the given UID of the User object, or ErrNoUser.
func (d *Directory) ByUID(uid types.UID) (*Person, error) {
	if p := d.snapshot().byUID[uid]; p != nil {
		return p, nil
	}
	return nil, ErrNoUser
}

// ByIdentity returns the person who is linked with a subject of a provider, or ErrNoUser.
func (d *Directory) ByIdentity(provider, subject string) (*Person, error) {
	if p := d.snapshot().byIdentity[v1.Identity{Provider: provider, Subject: subject}]; p != nil {
		return p, nil
	}
	return nil, ErrNoUser
}

// Users returns all people who weren't removed, sorted by name.
func (d *Directory) Users() []*Person { return d.snapshot().sorted }

// Groups returns all groups, sorted by name.
func (d *Directory) Groups() []*v1.Group { return d.snapshot().groups }

// Group returns the group with the given name, or ErrNoGroup.
func (d *Directory) Group(name string) (*v1.Group, error) {
	if g := d.snapshot().byGroup[name]; g != nil {
		return g, nil
	}
	return nil, noGroup(name)
}

// AdministratorGroup calls the package function AdministratorGroup with the groups of the Directory.
func (d *Directory) AdministratorGroup() (string, error) {
	var all []v1.GroupSpec
	for _, g := range d.Groups() {
		all = append(all, g.Spec)
	}
	return AdministratorGroup(all)
}

// AdministratorGroup returns the name of a group whose members are administrators. It prefers the group named administrators. It returns ErrNoGroup
// if no such group exists.
func AdministratorGroup(all []v1.GroupSpec) (string, error) {
	found := ""
	for i := range all {
		switch g := &all[i]; {
		case g.Administrator && g.Name == v1.GroupAdministrators:
			return g.Name, nil
		case g.Administrator && found == "":
			found = g.Name
		}
	}
	if found == "" {
		return "", hint.Wrap(fmt.Errorf("%w that makes its members administrators", ErrNoGroup), "make one, as an operator with a kubeconfig: paictl group add NAME --administrator")
	}
	return found, nil
}

// Members returns the sorted names of the people in a group.
func (d *Directory) Members(group string) []string { return d.snapshot().members[group] }

// Ignored returns, by object name, the reasons why Users and Groups are ignored.
func (d *Directory) Ignored() map[string]string { return d.snapshot().ignored }

// snapshot returns the current state, and computes a new state if the stores have changed. After a change, all callers get a snapshot that contains
// the change. snapshot is safe for concurrent use.
func (d *Directory) snapshot() *snapshot {
	if s := d.current(); s != nil {
		return s
	}
	d.making.Lock()
	defer d.making.Unlock()
	if s := d.current(); s != nil {
		return s
	}
	version := d.version() // before the stores are read: a change in between makes the snapshot outdated
	s := newSnapshot(d.users.All(), d.groups.All(), d.users.Bad(), d.groups.Bad())
	s.version = version
	d.now.Store(s)
	return s
}

// current returns the cached snapshot, or nil if the stores have changed since.
func (d *Directory) current() *snapshot {
	if s := d.now.Load(); s != nil && s.version == d.version() {
		return s
	}
	return nil
}

func (d *Directory) version() int64 { return d.users.Version() + d.groups.Version() }
