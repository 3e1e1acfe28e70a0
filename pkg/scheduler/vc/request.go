package vc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// DefaultName is the name of the virtual cluster that owns all cells if no virtual cluster is defined.
const DefaultName = "default"

// Request changes one virtual cluster. Missing settings stay the same.
type Request struct {
	Name string `json:"name"`
	// Cells are the new numbers of cells by type. 0 removes the type.
	Cells []Cells `json:"cells,omitempty"`
	// Pin lists pinned cells to add. Unpin lists pinned cells to remove.
	Pin   []string `json:"pin,omitempty"`
	Unpin []string `json:"unpin,omitempty"`
	// PerUser and PerGroup are quotas. nil doesn't change a quota.
	PerUser  *int `json:"perUser,omitempty"`
	PerGroup *int `json:"perGroup,omitempty"`
	// Users and Groups are quotas by name. nil removes a quota, so that PerUser or PerGroup applies again.
	Users  map[string]*int `json:"users,omitempty"`
	Groups map[string]*int `json:"groups,omitempty"`
	// Policy is one of the names in cell.Policies. "" doesn't change the policy.
	Policy string `json:"policy,omitempty"`
	// Define replaces the whole definition before the other changes are applied.
	Define *Definition `json:"define,omitempty"`
	// TakeFrom is the virtual cluster that loses the added cells.
	TakeFrom string `json:"takeFrom,omitempty"`
	// Delete removes the virtual cluster.
	Delete bool `json:"delete,omitempty"`
}

// FromDefault sets TakeFrom to the virtual cluster that owns all cells. It does so only if no virtual cluster is defined, and
// no request is for default or sets TakeFrom.
func FromDefault(requests []Request, have map[string]Definition) {
	if len(have) > 0 || slices.ContainsFunc(requests, func(r Request) bool { return r.Name == DefaultName || r.TakeFrom != "" }) {
		return
	}
	for i := range requests {
		requests[i].TakeFrom = DefaultName
	}
}

// Changes applies a request to the existing definitions, and returns the changed definitions. effective is the effective
// configuration. If no virtual cluster is defined, effective contains the virtual cluster default, and the changed definitions
// include default.
func (r *Request) Changes(have map[string]Definition, effective cell.Config) (map[string]*Definition, error) {
	out := map[string]*Definition{}
	h := hardwareOf(effective)
	if len(have) == 0 && len(effective.VirtualClusters) > 0 {
		have = map[string]Definition{}
		for _, v := range effective.VirtualClusters {
			d := definitionOf(v)
			have[v.Name], out[v.Name] = d, &d
		}
	}
	was, there := have[r.Name]
	if r.Delete {
		if !there {
			return nil, unknown(r.Name, have)
		}
		out[r.Name] = nil
		return out, r.give(h, was, Definition{}, have, out)
	}
	d := was
	if r.Define != nil {
		d = *r.Define
	}
	for _, c := range r.Cells {
		d.SetCells(h.whole(c.CellType), c.CellNumber)
	}
	if err := r.pins(&d); err != nil {
		return nil, err
	}
	r.quota(&d)
	if r.Policy != "" {
		d.Policy = r.Policy
	}
	if !there && len(d.VirtualCells) == 0 && len(d.PinnedCells) == 0 {
		return nil, hint.Errorf("say what it owns: paictl vc set "+r.Name+" --cells TYPE=N", "there is no virtual cluster %s, and a new one must own cells", r.Name)
	}
	out[r.Name] = &d
	return out, r.give(h, was, d, have, out)
}

func definitionOf(v cell.VirtualCluster) Definition {
	d := Definition{Policy: v.Policy, Quota: Quota{v.Quota.PerUser, v.Quota.PerGroup, v.Quota.Users, v.Quota.Groups}}
	for _, c := range v.Cells {
		d.VirtualCells = append(d.VirtualCells, Cells{c.Type, c.Count})
	}
	for _, id := range v.Pinned {
		d.PinnedCells = append(d.PinnedCells, Pinned{id})
	}
	return d
}

func (r *Request) pins(d *Definition) error {
	for _, id := range r.Unpin {
		at := slices.IndexFunc(d.PinnedCells, func(p Pinned) bool { return p.ID == id })
		if at < 0 {
			return hint.Errorf("see: paictl vc show "+r.Name, "%s has no pinned cell %s", r.Name, id)
		}
		d.PinnedCells = slices.Delete(slices.Clone(d.PinnedCells), at, at+1)
	}
	for _, id := range r.Pin {
		if !slices.Contains(d.PinnedCells, Pinned{id}) {
			d.PinnedCells = append(slices.Clone(d.PinnedCells), Pinned{id})
		}
	}
	return nil
}

func (r *Request) quota(d *Definition) {
	if r.PerUser != nil {
		d.Quota.PerUser = *r.PerUser
	}
	if r.PerGroup != nil {
		d.Quota.PerGroup = *r.PerGroup
	}
	d.Quota.Users, d.Quota.Groups = named(d.Quota.Users, r.Users), named(d.Quota.Groups, r.Groups)
}

func named(have map[string]int, change map[string]*int) map[string]int {
	if len(change) == 0 {
		return have
	}
	out := maps.Clone(have)
	if out == nil {
		out = map[string]int{}
	}
	for name, n := range change {
		if n == nil {
			delete(out, name)
			continue
		}
		out[name] = *n
	}
	return out
}

// give moves cells between this virtual cluster and TakeFrom. TakeFrom loses the cells that this virtual cluster gets, and gets
// the cells that this virtual cluster loses.
func (r *Request) give(h *hardware, was, is Definition, have map[string]Definition, out map[string]*Definition) error {
	if r.TakeFrom == "" {
		return nil
	}
	giver, there := have[r.TakeFrom]
	if !there || r.TakeFrom == r.Name {
		return unknown(r.TakeFrom, have)
	}
	owned := giver
	for _, cellType := range typesOf(was, is) {
		gets := is.Cells(cellType) - was.Cells(cellType)
		if _, level := h.find(cellType); gets > 0 && level < 0 && len(h.chains) > 0 && owned.Cells(cellType) == 0 {
			return hint.Errorf("the types are: "+strings.Join(h.types(), ", "), "there is no type of cell %s", cellType)
		}
		if gets > 0 && !h.provide(&giver, cellType, gets) {
			return hint.Errorf(fmt.Sprintf("it owns %s", owned.String()), "%s has fewer than the requested %d %s", r.TakeFrom, gets, cellType)
		}
		if gets != 0 {
			giver.SetCells(cellType, giver.Cells(cellType)-gets)
		}
	}
	out[r.TakeFrom] = &giver
	return nil
}

func typesOf(all ...Definition) []string {
	var out []string
	for _, d := range all {
		for _, c := range d.VirtualCells {
			if !slices.ContainsFunc(out, func(t string) bool { return sameType(t, c.CellType) }) {
				out = append(out, c.CellType)
			}
		}
	}
	return out
}

func unknown(name string, have map[string]Definition) error {
	names := slices.Sorted(maps.Keys(have))
	if len(names) == 0 {
		return fmt.Errorf("there is no virtual cluster %s", name)
	}
	if near := strictyaml.Nearest(name, names); near != "" {
		return hint.Errorf(fmt.Sprintf("did you mean %q?", near), "there is no virtual cluster %s", name)
	}
	return hint.Errorf("there are: "+strings.Join(names, ", "), "there is no virtual cluster %s", name)
}
