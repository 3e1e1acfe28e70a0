package app

import (
	"context"
	"net/http"
	"slices"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Storage is a storage that a caller may read.
type Storage struct {
	job.Storage
	// Default reports whether the storage is one of the user's default storages.
	Default bool
	// Credentials is set only if the credentials were requested and the caller may read them. Otherwise Note is the reason.
	Credentials map[string]string
	Note        string
	// Groups are the groups whose members may use the storage. Only StoragesOfGroups sets them.
	Groups []string
}

func storage(name string) rules.Object {
	return rules.Object{Kind: rules.KindStorage, Name: name, Storage: name}
}

// Storages returns the storages that are granted to the caller, sorted by name. If all is true, it returns all storages, and the caller must be an
// administrator.
func (d *Actions) Storages(ctx context.Context, all bool) ([]Storage, error) {
	rule := "storage.list"
	if all {
		rule = "storage.all"
	}
	if err := rules.Class(rule, &d.caller.Subject); err != nil {
		return nil, err
	}
	have, err := d.app.Jobs.Storages(ctx)
	if err != nil {
		return nil, err
	}
	have = slices.DeleteFunc(have, func(s job.Storage) bool { return rules.Decide(rule, &d.caller.Subject, storage(s.Name)) != nil })
	var out []Storage
	defaults := d.app.defaultStorages(&d.caller.Subject)
	for i := range have {
		out = append(out, Storage{Storage: have[i], Default: defaults[have[i].Name]})
	}
	return out, nil
}

// StoragesOfGroups returns all storages with their kinds and the groups that may use them, sorted by name. The caller must be an administrator.
func (d *Actions) StoragesOfGroups(ctx context.Context) ([]Storage, error) {
	all, err := d.Storages(ctx, true)
	if err != nil {
		return nil, err
	}
	groups := map[string][]string{}
	for _, g := range d.app.People.Groups() {
		for _, name := range g.Spec.Storages {
			groups[name] = append(groups[name], g.Spec.Name)
		}
	}
	var out []Storage
	for i := range all {
		found, err := d.app.Jobs.Storage(ctx, all[i].Name)
		if err != nil {
			return nil, err
		}
		if found != nil { // otherwise it was deleted after the list was read
			out = append(out, Storage{Storage: *found, Default: all[i].Default, Groups: groups[found.Name]})
		}
	}
	return out, nil
}

// Storage returns one storage. If secrets is true, it includes the credentials. For a token that was created to read credentials, it always includes
// them.
func (d *Actions) Storage(ctx context.Context, name string, secrets bool) (*Storage, error) {
	if err := rules.Decide("storage.list", &d.caller.Subject, storage(name)); err != nil {
		return nil, err
	}
	found, err := d.app.Jobs.Storage(ctx, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, &wire.Error{Status: http.StatusNotFound, Code: "NoStorageError", Message: "Storage " + wire.Shown(name) + " is not found."}
	}
	out := &Storage{Storage: *found, Default: d.app.defaultStorages(&d.caller.Subject)[name]}
	if token := d.caller.Token; secrets || token.Application && slices.Contains(token.Scopes, rules.ScopeSecrets) {
		err = rules.Decide("storage.secrets", &d.caller.Subject, storage(name))
		if err == nil {
			out.Credentials, out.Note, err = d.credentials(ctx, found, secrets)
		}
		if err := d.audited(ctx, "storage.secrets", storage(name), nil, err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// credentials returns the credentials of a storage, which give write access to the whole share. So users who may only read the share, or use a part
// of the share, can't get them. Administrators get them on request.
func (d *Actions) credentials(ctx context.Context, s *job.Storage, asked bool) (found map[string]string, note string, err error) {
	if !asked || !d.caller.Grants.Administrator {
		switch {
		case s.PerUser:
			return nil, "the credentials open the folders of all users: only administrators can read them", nil
		case s.ReadOnly:
			return nil, "the storage is read only, and the credentials may allow to write: only administrators can read them", nil
		}
	}
	return d.app.Jobs.Credentials(ctx, s)
}

// defaultStorages returns the names of a person's default storages, which are the first storages of the person's groups.
func (s *App) defaultStorages(who *rules.Subject) map[string]bool {
	out := map[string]bool{}
	for _, name := range who.Groups {
		if g, err := s.People.Group(name); err == nil && len(g.Spec.Storages) > 0 {
			out[g.Spec.Storages[0]] = true
		}
	}
	return out
}
