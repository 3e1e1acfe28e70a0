package release

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// losses returns the versions and fields that objects would lose after a change of their definition. The API server drops fields that the definition
// doesn't contain, even from existing objects.
func losses(from, to *unstructured.Unstructured) []string {
	next := map[string]map[string]any{}
	for _, v := range versions(to) {
		next[nameOf(v)] = v
	}
	var out []string
	for _, v := range versions(from) {
		name := nameOf(v)
		n, there := next[name]
		served, _ := v["served"].(bool)
		serves, _ := n["served"].(bool)
		switch {
		case !there:
			out = append(out, "version "+name)
			continue
		case served && !serves:
			out = append(out, "version "+name+", which would no longer be served")
		}
		for _, field := range lostFields(root(v), root(n), "") {
			out = append(out, field+" of version "+name)
		}
	}
	return out
}

func versions(u *unstructured.Unstructured) []map[string]any {
	all, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	var out []map[string]any
	for _, one := range all {
		if v, ok := one.(map[string]any); ok {
			out = append(out, v)
		}
	}
	return out
}

func nameOf(version map[string]any) string {
	name, _ := version["name"].(string)
	return name
}

// few returns the first names, and the number of the remaining names.
func few(all []string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:most], ", ") + " and " + plural.Of(len(all)-most, "other")
}

// refuseLosses returns the error for a definition that would remove data from objects.
func (v survey) refuseLosses(o object, lost []string) error {
	remedy := "use the paictl, or the chart, that installed it; to remove it anyway: paictl service upgrade -n " + v.release + " --downgrade"
	if len(v.base) == 0 { // not an upgrade: in an upgrade, installed objects are the base
		remedy = "use the paictl, or the chart, that installed it; or delete the definition with all objects of its kind: kubectl delete " + kubectlName(o)
	}
	return hint.Errorf(remedy, "%s would lose %s, with the content that objects have there", o, few(lost))
}

// keepsMore reports whether the cluster's definition contains more than the chart's definition. In this case, the cluster's definition is kept.
// The cluster's definition may come from a later chart that was rolled back or stopped. keepsMore returns an error if each definition contains parts that the other
// doesn't contain.
func (v survey) keepsMore(o object, live *unstructured.Unstructured) (bool, error) {
	if v.downgrade {
		return false, nil
	}
	lost := losses(live, o.Unstructured)
	if len(lost) == 0 {
		return false, nil
	}
	if len(losses(o.Unstructured, live)) > 0 {
		return false, v.refuseLosses(o, lost)
	}
	return true, nil
}
