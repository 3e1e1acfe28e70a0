package cell

import (
	"sort"
	"strings"

	"github.com/openpai/paictl/pkg/ui/plural"
)

func (v *validator) checkVirtualClusters() {
	seen := make(map[string]bool, len(v.config.VirtualClusters))
	for i := range v.config.VirtualClusters {
		vc := &v.config.VirtualClusters[i]
		path := []any{"virtualClusters", vc.Name}
		switch {
		case strings.TrimSpace(vc.Name) == "" || strings.ContainsRune(vc.Name, '/'):
			v.fail(path, "write a name without slashes", "%q is not a name for a virtual cluster", vc.Name)
		case seen[vc.Name]:
			v.fail(path, "keep one of the two", "there are two virtual clusters %q", vc.Name)
		}
		seen[vc.Name] = true
		for j, cell := range vc.Cells {
			v.virtual(vc.Name, cell, at(path, "virtualCells", j))
		}
		for j, id := range vc.Pinned {
			v.claimPin(vc.Name, id, at(path, "pinnedCells", j, "pinnedCellId"))
		}
		v.checkQuota(vc.Quota, at(path, "quota"))
		v.checkPolicy(vc.Policy, at(path, "policy"))
	}
}

// virtual checks one entry of virtualCells and records its claim.
func (v *validator) virtual(vc string, cell Virtual, path []any) {
	if cell.Count < 0 { // HiveD also accepts 0
		v.fail(at(path, "cellNumber"), "write how many of them the virtual cluster owns, or remove the entry", "the number of cells is %d", cell.Count)
	}
	typePath := at(path, "cellType")
	parts := strings.Split(cell.Type, ".")
	chain := parts[0]
	if v.broken[chain] {
		return // already reported with the hardware
	}
	if !v.isChain(chain) {
		remedy := "begin with the type of a top-level cell: " + v.chains()
		if cell.Type == "" {
			v.fail(typePath, remedy, "the type of the cells is missing")
		} else {
			v.fail(typePath, remedy, "there is no top-level cell of type %q", chain)
		}
		return
	}
	l, _ := v.Levels(chain)
	level := 0
	for _, name := range parts[1:] {
		next := level + 1
		for next < len(l) && l[next].Type != name {
			next++
		}
		if next == len(l) {
			v.fail(typePath, "the types below it are "+names(l[level+1:]), "%q has no type %q in it", l[level].Type, name)
			return
		}
		level = next
	}
	if cell.Count > 0 {
		v.claims = append(v.claims, claim{vc: vc, chain: chain, level: level, count: min(cell.Count, maxCells+1), path: at(path, "cellNumber")})
	}
}

func names(l []Level) string {
	out := make([]string, len(l))
	for i := range l {
		out[i] = l[i].Type
	}
	if len(out) == 0 {
		return "none: it is a GPU"
	}
	return strings.Join(out, ", ")
}

func (v *validator) isChain(name string) bool {
	for i := range v.config.Physical {
		if v.config.Physical[i].Type == name {
			return true
		}
	}
	return false
}

// chains lists the types of the top cells, in the order of the configuration.
func (v *validator) chains() string {
	var out []string
	seen := map[string]bool{}
	for i := range v.config.Physical {
		if t := v.config.Physical[i].Type; t != "" && !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return "none exist yet"
	}
	return strings.Join(out, ", ")
}

func (v *validator) claimPin(vc, id string, path []any) {
	p, ok := v.pinned[id]
	switch {
	case !ok && len(v.broken) > 0:
		// The pinned cell may be inside a cell with a problem that is already reported.
	case !ok:
		v.fail(path, "write it as pinnedCellId of a physical cell", "there is no pinned cell %q", id)
	case p.owner != "":
		v.fail(path, "give it to one of them", "the pinned cell %q already belongs to the virtual cluster %q", id, p.owner)
	default:
		p.owner = vc
		v.pinned[id] = p
	}
}

func (v *validator) checkQuota(q Quota, path []any) {
	one := func(n int, steps ...any) {
		if n < 0 {
			v.fail(at(path, steps...), "write a number of GPUs; 0 means no limit", "the limit is %d", n)
		}
	}
	one(q.PerUser, "perUser")
	one(q.PerGroup, "perGroup")
	for _, list := range []struct {
		key    string
		limits map[string]int
	}{{"users", q.Users}, {"groups", q.Groups}} {
		keys := make([]string, 0, len(list.limits))
		for k := range list.limits {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			one(list.limits[k], list.key, k)
			if k == "" {
				v.fail(at(path, list.key), "write the name of the user or group", "a limit has no name")
			}
		}
	}
}

func countOf(n int, what string) string {
	return plural.Of(n, "cell") + " of type " + what
}
