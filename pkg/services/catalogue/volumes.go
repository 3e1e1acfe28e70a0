package catalogue

import (
	"cmp"
	"maps"
	"net/netip"
	"path"
	"slices"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

const (
	storageService = "storage"
	// localClass is the storage class of volumes that are folders on machines. The storage service creates a volume for each claim.
	localClass = "pai-local"
)

// LocalVolume is a folder on a machine. The storage service creates the folder for the claim of a service.
type LocalVolume struct {
	Service, Namespace, Claim string
	Path                      string
	// Node is the machine that holds or will hold the folder.
	Node string
	// Machines are the machines that the service's placement allows.
	Machines []string
	// Owner is the user ID and group ID that own the folder.
	Owner int64

	size any
}

func (v LocalVolume) value() map[string]any {
	return map[string]any{
		"service": v.Service, "claim": v.Claim, "namespace": v.Namespace, "owner": v.Owner, "size": v.size, "node": v.Node, "path": v.Path,
	}
}

// LocalVolumes returns the volumes that enabled services claim. LocalVolumes returns nil if the section of the storage service lists the volumes.
func (c *Catalogue) LocalVolumes() []LocalVolume { return slices.Clone(c.volumes) }

// Place sets the machines of existing volumes. A volume stays on its machine, even if the layout would choose another machine for a new volume. node
// returns the machine of an existing volume, or "" for a new volume.
func (c *Catalogue) Place(node func(LocalVolume) string) {
	for i, v := range c.volumes {
		c.volumes[i].Node = cmp.Or(node(v), v.Node)
	}
	if len(c.volumes) > 0 {
		storage := c.services[storageService]
		storage.Values = merge(storage.Values, localValues(c.volumes))
	}
}

func localValues(volumes []LocalVolume) map[string]any {
	list := []any{}
	for _, v := range volumes {
		list = append(list, v.value())
	}
	return map[string]any{"local": map[string]any{"serviceVolumes": list}}
}

// giveVolumes passes the claimed volumes of enabled services to the storage service, and returns the volumes. giveVolumes returns nil if the section
// of the storage service lists the volumes.
func (b *builder) giveVolumes() []LocalVolume {
	storage := b.services[storageService]
	if storage == nil || storage.Upstream != nil {
		return nil
	}
	var volumes []LocalVolume
	for _, name := range sorted(maps.Keys(b.services)) {
		if s := b.services[name]; s.Enabled && len(s.Claims) > 0 {
			volumes = append(volumes, volumesOf(b.cfg, s)...)
		}
	}
	theirs := listsVolumes(storage.Values)
	storage.Values = mergeComputed(localValues(volumes), storage.Values)
	if theirs {
		return nil
	}
	return volumes
}

// listsVolumes reports whether the section of the storage service lists volumes. listsVolumes also returns true for invalid values, because
// checkValues rejects invalid values later.
func listsVolumes(section map[string]any) bool {
	local, isMap := section["local"].(map[string]any)
	if !isMap {
		return section["local"] != nil
	}
	list, isList := local["serviceVolumes"].([]any)
	return len(list) > 0 || !isList && local["serviceVolumes"] != nil
}

// volumesOf returns the local volumes of a service, as if all volumes were new. A new volume is placed on the machine of the placement with the
// lowest address. The result must not depend on the order of the machine list, because users sort this list.
func volumesOf(cfg *config.Cluster, s *Service) []LocalVolume {
	persistence, _ := merge(s.Chart.Values, s.Values)["persistence"].(map[string]any)
	machines := machinesOf(cfg, s.Placement)
	if !config.UsableDataPath(cfg.Services.Cluster.Common.DataPath) || persistence["storageClass"] != localClass || persistence["enabled"] == false || len(machines) == 0 {
		return nil
	}
	slices.SortFunc(machines, byAddress)
	var names []string
	for _, m := range machines {
		names = append(names, m.Hostname)
	}
	var out []LocalVolume
	for _, claim := range s.Claims {
		out = append(out, LocalVolume{
			Service: s.Name, Namespace: s.Namespace, Claim: claim.Name, Node: names[0], Machines: names,
			Path:  path.Join(cfg.Services.Cluster.Common.DataPath, s.Name, claim.Name),
			Owner: claim.Owner, size: persistence["size"],
		})
	}
	return out
}

// byAddress compares machines by the numeric values of their addresses. Machines without an address come last, sorted by name. Nodes that paictl
// didn't install have no address.
func byAddress(a, b layout.Machine) int {
	x, errX := netip.ParseAddr(a.HostIP)
	y, errY := netip.ParseAddr(b.HostIP)
	switch {
	case errX == nil && errY != nil:
		return -1
	case errX != nil && errY == nil:
		return 1
	}
	return cmp.Or(x.Compare(y), cmp.Compare(a.Hostname, b.Hostname))
}
