package catalogue

import (
	"maps"
	"path"

	"github.com/openpai/paictl/pkg/config"
)

const (
	storageService = "storage"
	// localClass is the storage class whose volumes are folders of one machine. The storage
	// service makes them, one for each claim.
	localClass = "pai-local"
)

// giveVolumes tells the storage service which volumes the enabled services claim.
func (b *builder) giveVolumes() {
	storage := b.services[storageService]
	if storage == nil || storage.Upstream != nil {
		return
	}
	volumes := []any{}
	for _, name := range sorted(maps.Keys(b.services)) {
		if s := b.services[name]; s.Enabled && len(s.Claims) > 0 {
			volumes = append(volumes, volumesOf(b.cfg, s)...)
		}
	}
	storage.Values = mergeComputed(map[string]any{"local": map[string]any{"serviceVolumes": volumes}}, storage.Values)
}

// volumesOf lists the local volumes of a service. They lie on the first machine of its
// placement: the place must not move when a machine is added at the end of the layout.
func volumesOf(cfg *config.Cluster, s *Service) []any {
	persistence, _ := merge(s.Chart.Values, s.Values)["persistence"].(map[string]any)
	machines := machinesOf(cfg, s.Placement)
	if persistence["storageClass"] != localClass || persistence["enabled"] == false || len(machines) == 0 {
		return nil
	}
	var out []any
	for _, claim := range s.Claims {
		out = append(out, map[string]any{
			"service": s.Name, "claim": claim.Name, "namespace": s.Namespace, "owner": claim.Owner,
			"size": persistence["size"], "node": machines[0].Hostname,
			"path": path.Join(cfg.Services.Cluster.Common.DataPath, s.Name, claim.Name),
		})
	}
	return out
}
