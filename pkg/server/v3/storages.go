package v3

import (
	"context"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func storageRoutes() []server.Route {
	return []server.Route{
		server.JSON("GET", api.Prefix+"/storages", "storage.all", "Lists all storages, their kinds, and the groups that may use them", allStorages),
	}
}

func allStorages(ctx context.Context, d *app.Actions, _ *struct{}) (*api.Storages, error) {
	all, err := d.StoragesOfGroups(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.Storages{Items: []api.Storage{}}
	for i := range all {
		s := &all[i]
		out.Items = append(out.Items, api.Storage{Name: s.Name, Kind: s.Kind, Volume: s.Volume, Capacity: s.Capacity, ReadOnly: s.ReadOnly, PerUser: s.PerUser, Groups: append([]string{}, s.Groups...)})
	}
	return out, nil
}
