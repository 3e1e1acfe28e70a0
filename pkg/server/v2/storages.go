package v2

import (
	"context"
	"maps"
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

func storageRoutes() []server.Route {
	const former = prefix + "/storage/{kind}"
	return []server.Route{
		server.JSON(http.MethodGet, prefix+"/storages", "storage.list", "Lists the storages that are granted to you; with ?default=true, your default storages", storages),
		{Method: http.MethodGet, Path: prefix + "/storages/{storage}", Rule: "storage.list", Serve: getStorage, In: reflect.TypeFor[storageIn](), Out: reflect.TypeFor[storageDetail](),
			Summary: "Returns a storage; with ?secrets=true, also its credentials", Errors: []string{"NoStorageError"}},
		server.JSON(http.MethodGet, former, "storage.list", "Returns 410: storages have replaced the storage configurations of early releases", formerStorage, server.Also(former+"/{storage}"), server.Errors("GoneError")),
	}
}

// storage is a storage that job files can name.
type storage struct {
	Name     string `json:"name"`
	Share    bool   `json:"share"` // everyone sees all of it
	Volume   string `json:"volumeName"`
	Default  *bool  `json:"default,omitempty"`
	Capacity string `json:"capacity,omitempty"`
}

func newStorage(s *app.Storage) storage {
	return storage{Name: s.Name, Share: !s.PerUser, Volume: s.Volume, Capacity: s.Capacity}
}

type storageList struct {
	Storages []storage `json:"storages"`
}

type storagesIn struct {
	Default bool `query:"default"`
	All     bool `query:"all"` // for administrators
}

func storages(ctx context.Context, d *app.Actions, in *storagesIn) (*storageList, error) {
	all, err := d.Storages(ctx, in.All)
	if err != nil {
		return nil, err
	}
	out := &storageList{Storages: []storage{}}
	for i := range all {
		if in.Default && !all[i].Default {
			continue
		}
		s := newStorage(&all[i])
		s.Default = &all[i].Default
		out.Storages = append(out.Storages, s)
	}
	return out, nil
}

// storageDetail is a storage with its settings. Data also contains the credentials, because OpenPAI's clients read them there.
type storageDetail struct {
	storage
	Type         string            `json:"type"`
	Data         map[string]string `json:"data"`
	ReadOnly     bool              `json:"readOnly"`
	MountOptions []string          `json:"mountOptions,omitempty"`
	Secret       string            `json:"secretName,omitempty"`
	// Note is the reason why Data contains no credentials.
	Note string `json:"note,omitempty"`
}

type storageIn struct {
	Storage string `path:"storage"`
	Secrets bool   `query:"secrets"`
}

func getStorage(c *server.Call) error {
	in := storageIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	s, err := c.Actions.Storage(c.Context(), in.Storage, in.Secrets)
	if err != nil {
		return err
	}
	out := &storageDetail{storage: newStorage(s), Type: s.Kind, Data: s.Where, ReadOnly: s.ReadOnly, MountOptions: s.MountOptions, Secret: s.Secret, Note: s.Note}
	if len(s.Credentials) > 0 {
		c.Writer.Header().Set("Cache-Control", "no-store")
		maps.Copy(out.Data, s.Credentials)
	}
	return c.JSON(out)
}

func formerStorage(context.Context, *app.Actions, *struct{}) (*storageDetail, error) {
	return nil, &wire.Error{Status: http.StatusGone, Code: "GoneError", Message: "storage configurations are gone: storages are claims now", Remedy: "ask " + prefix + "/storages"}
}
