package v2

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/openpai/paictl/pkg/job"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

func vcRoutes() []server.Route {
	const one = prefix + "/virtual-clusters/{vc}"
	none := server.Errors("NoVirtualClusterError")
	change := func(method, path, summary string) server.Route {
		return server.JSON(method, path, "vc.manage", summary, changeVC, server.Errors("NotImplementedError"))
	}
	return []server.Route{
		{Method: http.MethodGet, Path: prefix + "/virtual-clusters", Aliases: []string{old + "/virtual-clusters"}, Rule: "vc.read", Serve: listVCs, In: reflect.TypeFor[vcsIn](), Out: reflect.TypeFor[map[string]vc](), Or: []reflect.Type{reflect.TypeFor[map[string]machine]()},
			Summary: "Returns the virtual clusters that you may use, and their usage; with ?nodes, the used GPUs of each machine"},
		server.JSON(http.MethodGet, one, "vc.read", "Returns the resources of a virtual cluster, and their usage", getVC, none, server.Also(old+"/virtual-clusters/{vc}")),
		server.JSON(http.MethodGet, prefix+"/cluster/sku-types", "sku.read", "Returns the CPU and memory that go with a GPU of each type, and of a CPU cell; with ?vc, only of the types that a virtual cluster owns", skus, none),
		server.JSON(http.MethodGet, one+"/sku-types", "sku.read", "Returns the CPU and memory that go with a GPU of each type that a virtual cluster owns", skusOf, none),
		change(http.MethodPut, one, "Returns 501: virtual clusters are changed with paictl vc set"),
		change(http.MethodPut, one+"/status", "Returns 501: virtual clusters are changed with paictl vc set"),
		change(http.MethodDelete, one, "Returns 501: virtual clusters are changed with paictl vc set"),
	}
}

// vc is a virtual cluster in OpenPAI's format. Capacities are percentages of the cluster's GPUs.
type vc struct {
	Capacity     float64        `json:"capacity"`
	UsedCapacity float64        `json:"usedCapacity"`
	MaxCapacity  float64        `json:"maxCapacity"`
	Dedicated    bool           `json:"dedicated"`
	Used         resources      `json:"resourcesUsed"`
	Guaranteed   resources      `json:"resourcesGuaranteed"` // without the bad GPUs
	Total        resources      `json:"resourcesTotal"`
	SKUs         map[string]sku `json:"skus"`
	// WaitingGangs is the number of gangs that wait in the virtual cluster. A gang is a job, or a part of a job whose tasks start together.
	WaitingGangs int `json:"waitingGangs"`
}

// sku holds the numbers of a virtual cluster's GPUs or CPU cells of one type.
type sku struct {
	Used       int `json:"used"`
	Guaranteed int `json:"guaranteed"`
	Total      int `json:"total"`
}

// resources holds processors, memory in MB, and GPUs. Processors and GPUs are in two fields each, because clients read both fields.
type resources struct {
	CPU    int `json:"cpu"`
	Memory int `json:"memory"`
	GPU    int `json:"gpu"`
	VCores int `json:"vCores"`
	GPUs   int `json:"GPUs"`
}

func newVC(v *schedulerapi.VirtualCluster, shares map[string]job.Share, gpus int) vc {
	out := vc{SKUs: map[string]sku{}, WaitingGangs: v.WaitingGangs, Capacity: part(v.Guaranteed, gpus), UsedCapacity: part(v.Used, gpus), MaxCapacity: part(v.Guaranteed, gpus)}
	var used, guaranteed, all amount
	for _, l := range v.Leaves {
		share := shares[l.LeafType]
		out.SKUs[l.LeafType] = sku{l.Used, l.Guaranteed - l.Bad, l.Guaranteed}
		used.add(share, l.Used)
		guaranteed.add(share, l.Guaranteed-l.Bad)
		all.add(share, l.Guaranteed)
	}
	out.Used, out.Guaranteed, out.Total = used.of(v.Used), guaranteed.of(v.Guaranteed-v.Bad), all.of(v.Guaranteed)
	return out
}

// amount holds the processors and the memory for a number of leaf cells.
type amount struct{ milliCPU, memoryMB int }

func (a *amount) add(s job.Share, leaves int) {
	a.milliCPU, a.memoryMB = a.milliCPU+leaves*s.MilliCPU, a.memoryMB+leaves*s.MemoryMB
}

func (a *amount) of(gpus int) resources {
	cores := a.milliCPU / 1000
	return resources{cores, a.memoryMB, gpus, cores, gpus}
}

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

type machine struct {
	Used      int `json:"gpuUsed"`
	Available int `json:"gpuAvailable"`
	Total     int `json:"gpuTotal"`
}

func newMachine(n *schedulerapi.Node) machine {
	m := machine{Used: len(n.Used), Total: len(n.Configured)}
	for _, i := range n.Configured {
		if n.Healthy && !slices.Contains(n.Used, i) && !slices.Contains(n.Missing, i) && !slices.Contains(n.Unhealthy, i) {
			m.Available++
		}
	}
	return m
}

type vcsIn struct {
	Nodes *string `query:"nodes"`
}

// listVCs responds with the machines if the query requests nodes, otherwise with the virtual clusters.
func listVCs(c *server.Call) error {
	in := vcsIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.Nodes != nil {
		all, err := c.Actions.Machines(c.Context())
		if err != nil {
			return err
		}
		out := map[string]machine{}
		for i := range all.Items {
			out[all.Items[i].Name] = newMachine(&all.Items[i])
		}
		return c.JSON(out)
	}
	out, err := vcs(c.Context(), c.Actions)
	if err != nil {
		return err
	}
	return c.JSON(out)
}

func vcs(ctx context.Context, d *app.Actions) (map[string]vc, error) {
	all, err := scheduled(ctx, d)
	if err != nil {
		return nil, err
	}
	machines, err := d.Machines(ctx)
	if err != nil {
		return nil, err
	}
	shares, err := d.Shares(ctx, "")
	if err != nil {
		return nil, err
	}
	gpus := 0
	for i := range machines.Items {
		gpus += len(machines.Items[i].Configured)
	}
	out := map[string]vc{}
	for i := range all.Items {
		out[all.Items[i].Name] = newVC(&all.Items[i], shares, gpus)
	}
	return out, nil
}

type vcIn struct {
	VC string `path:"vc"`
}

func getVC(ctx context.Context, d *app.Actions, in *vcIn) (*vc, error) {
	all, err := vcs(ctx, d)
	if err != nil {
		return nil, err
	}
	one, there := all[in.VC]
	if !there {
		return nil, app.NoVC(in.VC)
	}
	return &one, nil
}

// skuType holds the resources of one GPU with its share of the machine, or of one CPU cell. Memory is in MB.
type skuType struct {
	CPU    float64 `json:"cpu"`
	Memory int     `json:"memory"`
	GPU    int     `json:"gpu"`
}

type skusIn struct {
	VC string `query:"vc"`
}

func skus(ctx context.Context, d *app.Actions, in *skusIn) (*map[string]skuType, error) {
	shares, err := d.Shares(ctx, in.VC)
	if err != nil {
		return nil, err
	}
	if in.VC != "" && len(shares) == 0 {
		return nil, app.NoVC(in.VC)
	}
	out := map[string]skuType{}
	for name, s := range shares {
		cpu := float64(s.MilliCPU / 1000) // whole processors, as in forms and job files
		if cpu == 0 {
			cpu = float64(s.MilliCPU) / 1000
		}
		out[name] = skuType{cpu, s.MemoryMB, s.GPU}
	}
	return &out, nil
}

func skusOf(ctx context.Context, d *app.Actions, in *vcIn) (*map[string]skuType, error) {
	return skus(ctx, d, &skusIn{in.VC})
}

func changeVC(context.Context, *app.Actions, *vcIn) (*message, error) {
	return nil, &wire.Error{Status: http.StatusNotImplemented, Code: "NotImplementedError", Message: "virtual clusters are defined in the cluster's configuration, which the server doesn't write",
		Remedy: "an operator changes them with: paictl vc set NAME --cells TYPE=N"}
}

// scheduled returns the virtual clusters and their usage, or an error if no scheduler responds.
func scheduled(ctx context.Context, d *app.Actions) (*schedulerapi.VirtualClusters, error) {
	all, down, err := d.VirtualClusters(ctx)
	return all, cmp.Or(err, down)
}
