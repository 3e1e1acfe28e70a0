package release

import (
	"context"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/secret"
)

// These are the actions of a Change.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// diffContext is the number of unchanged lines around each change in a diff.
const diffContext = 3

// Plan implements Manager. Like Apply, it fails if the API rejects an object.
func (h *helm) Plan(ctx context.Context, r Request) (Plan, error) {
	j, err := h.study(ctx, r, true)
	if err != nil {
		return Plan{}, h.explain("plan", r.Name, err)
	}
	changes, err := j.changes()
	if err != nil {
		return Plan{}, h.explain("plan", r.Name, err)
	}
	kept, err := j.kept(ctx)
	return Plan{Action: j.action, Changes: changes, Kept: kept, Loses: j.loses()}, h.explain("plan", r.Name, err)
}

// loses returns a line for each definition whose change removes versions or fields.
func (j *job) loses() []string {
	var out []string
	for _, d := range j.kinds {
		if len(d.loses) > 0 {
			out = append(out, idOf(d.want).title()+": "+few(d.loses))
		}
	}
	return out
}

// changes compares the desired manifest with the last sent manifest. If an object is equal in both manifests, changes compares the object with the
// cluster.
func (j *job) changes() ([]Change, error) {
	out, err := j.changesOfKinds()
	if err != nil {
		return nil, err
	}
	base := j.base.byID()
	if j.past.leaving {
		base = nil
	}
	for _, f := range j.findings {
		c, err := planObject(base, f)
		if err != nil {
			return nil, err
		}
		if c != nil {
			out = append(out, *c)
		}
	}
	wanted := j.want.byID()
	for _, o := range j.base {
		kind := o.GroupVersionKind().GroupKind()
		if _, stays := wanted[o.id]; !stays && o.GetAnnotations()[resourcePolicy] != resourcePolicyKeep && kind != claims && kind != definitions {
			out = append(out, Change{Action: Delete, Object: o.title()})
		}
	}
	return out, nil
}

// changesOfKinds returns the changes of the definitions in the chart's folder crds. Without an upgrade, changesOfKinds returns only missing
// definitions.
func (j *job) changesOfKinds() ([]Change, error) {
	var out []Change
	for _, d := range j.kinds {
		if d.template {
			continue // it is among the objects
		}
		c, err := d.change()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if j.request.Upgrade {
		return out, nil
	}
	for _, crd := range j.request.Chart.CRDObjects() {
		parsed, err := parseObjects(string(crd.File.Data))
		if err != nil {
			continue // the plan of the install contains it
		}
		for _, u := range parsed {
			if _, err := j.mapper.RESTMapping(definedKind(u)); meta.IsNoMatchError(err) {
				out = append(out, Change{Action: Create, Object: idOf(u).title()})
			}
		}
	}
	return out, nil
}

func planObject(base map[id]object, f finding) (*Change, error) {
	old, known := base[f.id]
	before, after, action := (*unstructured.Unstructured)(nil), f.Unstructured, Update
	switch {
	case f.missing() || f.mapping == nil && !known:
		action = Create
	case known && !sameJSON(old.Object, f.Object):
		before = old.Unstructured
	case f.changed():
		before, after = &unstructured.Unstructured{Object: withoutBookkeeping(f.live)},
			&unstructured.Unstructured{Object: withoutBookkeeping(f.after)}
	default:
		return nil, nil
	}
	diff, err := diffObjects(f.id, before, after)
	if err != nil || diff == "" && action == Update {
		return nil, err
	}
	return &Change{Action: action, Object: f.title(), Diff: diff}, nil
}

// diffObjects returns a unified diff of two objects in YAML. before is nil for a new object.
func diffObjects(i id, before, after *unstructured.Unstructured) (string, error) {
	left, right := masked(before, nil), masked(after, before)
	var texts [2]string
	for n, u := range []*unstructured.Unstructured{left, right} {
		if u == nil {
			continue
		}
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			return "", fmt.Errorf("write %s as YAML: %w", i, err)
		}
		texts[n] = string(raw)
	}
	if texts[0] == texts[1] {
		return "", nil
	}
	from := i.title()
	if before == nil {
		from = "/dev/null"
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(texts[0]), B: lines(texts[1]), FromFile: from, ToFile: i.title(), Context: diffContext,
	})
}

// lines splits a text into lines. Each line keeps its line break.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	return all[:len(all)-1]
}

// masked returns a Secret with masked values, or any other object unchanged. masked marks values that differ from the values of other, so that a diff
// shows the change without the content.
func masked(u, other *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil || u.GetKind() != "Secret" {
		return u
	}
	out := u.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		values, ok := out.Object[field].(map[string]any)
		if !ok {
			continue
		}
		var was map[string]any
		if other != nil {
			was, _ = other.Object[field].(map[string]any)
		}
		for k, v := range values {
			values[k] = secret.Mask
			if old, there := was[k]; other != nil && there && old != v {
				values[k] = secret.Mask + " (changed)"
			}
		}
	}
	return out
}
