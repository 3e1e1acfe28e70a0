package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openpai/paictl/pkg/hint"
)

const (
	// definitionTimeout is the time limit for the API to serve a new kind.
	definitionTimeout = time.Minute
	// schemaTimeout is the time limit for surveying objects with a changed definition. The API server uses a changed definition shortly after storing it.
	schemaTimeout      = 10 * time.Second
	definitionInterval = 100 * time.Millisecond
)

// definition is a definition in the chart that is missing in the cluster or differs from the cluster's definition.
type definition struct {
	want  *unstructured.Unstructured
	live  *unstructured.Unstructured // nil if it is missing
	after *unstructured.Unstructured // as it would be after the change
	// template means that the definition is among the chart's templates. Such a definition is an object of the release.
	template bool
	// loses lists the versions and fields that objects would lose.
	loses []string
}

func (d definition) change() (Change, error) {
	i := idOf(d.want)
	out := Change{Action: Create, Object: i.title()}
	if d.live == nil {
		return out, nil
	}
	diff, err := diffObjects(i, &unstructured.Unstructured{Object: withoutBookkeeping(d.live)}, &unstructured.Unstructured{Object: withoutBookkeeping(d.after)})
	out.Action, out.Diff = Update, diff
	return out, err
}

// definitionsThatChange compares the chart's definitions with the cluster's definitions, and finds the changes with a dry run. definitionsThatChange
// compares the definitions in the crds folder only in an upgrade. In a start, the cluster may already contain newer definitions from another source.
func (j *job) definitionsThatChange(ctx context.Context, v survey) ([]definition, error) {
	var out []definition
	for _, o := range j.want {
		if o.GroupVersionKind().GroupKind() != definitions {
			continue
		}
		if old, known := v.base[o.id]; known && sameJSON(old.Object, o.Object) && !v.downgrade {
			continue
		}
		d, err := v.compareDefinition(ctx, o)
		if err != nil {
			return nil, err
		}
		if d != nil && d.live != nil { // a missing one is created with the objects
			d.template = true
			out = append(out, *d)
		}
	}
	if !j.request.Upgrade {
		return out, nil
	}
	inFolder, err := j.definitionsInFolder()
	if err != nil {
		return nil, err
	}
	for _, o := range inFolder {
		d, err := v.compareDefinition(ctx, o)
		if err != nil {
			return nil, err
		}
		if d != nil {
			out = append(out, *d)
		}
	}
	return out, nil
}

// othersDefinition reports whether a definition belongs to the templates of another release. Only that release may change the definition.
func (v survey) othersDefinition(live *unstructured.Unstructured) bool {
	owner := live.GetAnnotations()
	other := owner[ownerName] != "" && (owner[ownerName] != v.release || owner[ownerNamespace] != v.namespace)
	if other {
		v.log.Info("a definition of the chart belongs to another release", "definition", live.GetName(), "release", owner[ownerNamespace]+"/"+owner[ownerName])
	}
	return other
}

func (j *job) definitionsInFolder() (manifest, error) {
	var out manifest
	for _, crd := range j.request.Chart.CRDObjects() {
		found, err := j.mapObjects(string(crd.File.Data), mustBeServed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Filename, err)
		}
		for _, o := range found {
			if o.GroupVersionKind().GroupKind() == definitions {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// compareDefinition compares a definition with the cluster's definition. compareDefinition returns nil if the definitions are equal or the cluster's
// definition must be kept. A start keeps a definition with more fields than the chart's definition. An upgrade that would remove fields from objects
// returns an error.
func (v survey) compareDefinition(ctx context.Context, o object) (*definition, error) {
	live, err := v.get(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o, err)
	}
	var lost []string
	if live != nil {
		if v.othersDefinition(live) {
			return nil, nil
		}
		if !v.upgrade {
			if more, err := v.keepsMore(o, live); more || err != nil {
				return nil, err
			}
		}
		if err := keepsStored(o, live); err != nil {
			return nil, err
		}
		if lost = losses(live, o.Unstructured); len(lost) > 0 && !v.downgrade {
			return nil, v.refuseLosses(o, lost)
		}
	}
	after, err := v.applyDefinition(ctx, o, metav1.DryRunAll)
	if err != nil {
		return nil, v.refusal(o, err)
	}
	if live != nil && sameObject(live, after) {
		return nil, nil
	}
	return &definition{want: o.Unstructured, live: live, after: after, loses: lost}, nil
}

// applyDefinition sends a definition by server-side apply. The chart's fields override the cluster's fields. Fields of other programs are kept, such
// as the certificate of a conversion webhook.
func (v survey) applyDefinition(ctx context.Context, o object, dryRun ...string) (*unstructured.Unstructured, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	force := true
	return v.resource(o).Patch(ctx, o.name, types.ApplyPatchType, raw, metav1.PatchOptions{
		DryRun: dryRun, Force: &force, FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
}

const remedyStored = "write its objects again in a version that the chart has, and take the old one out of status.storedVersions: " +
	"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version"

// keepsStored returns an error if a definition would remove a version that stored objects may use. Such objects would become unreadable.
func keepsStored(o object, live *unstructured.Unstructured) error {
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	has := versionsOf(o.Unstructured, false)
	gone := slices.DeleteFunc(stored, func(version string) bool { return slices.Contains(has, version) })
	if len(gone) == 0 {
		return nil
	}
	return hint.Errorf(remedyStored, "%s: the chart no longer has version %s, in which the cluster stores objects", o, strings.Join(gone, ", "))
}

// versionsOf returns the names of a definition's versions. If served is set, versionsOf returns only served versions.
func versionsOf(u *unstructured.Unstructured, served bool) []string {
	var out []string
	for _, v := range versions(u) {
		if on, _ := v["served"].(bool); nameOf(v) != "" && (on || !served) {
			out = append(out, nameOf(v))
		}
	}
	return out
}

// redefine sends the changed definitions, waits until the API serves them, and checks the objects of their kinds.
func (j *job) redefine(ctx context.Context) error {
	if len(j.kinds) == 0 {
		return nil
	}
	v := j.viewOf(false)
	for _, d := range j.kinds {
		o, err := j.mapObject(d.want, mustBeServed)
		if err != nil {
			return err
		}
		if _, err := v.applyDefinition(ctx, o); err != nil {
			return v.refusal(o, err)
		}
	}
	for _, d := range j.kinds {
		if err := j.awaitServed(ctx, d.want); err != nil {
			return err
		}
	}
	j.forget()
	return j.lookAgain(ctx, v)
}

// awaitServed waits until the API lists and serves all versions of a definition. The API may briefly list a removed definition with the same name.
func (j *job) awaitServed(ctx context.Context, crd *unstructured.Unstructured) error {
	group := definedKind(crd).Group
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	for _, version := range versionsOf(crd, true) {
		kind := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		err := wait.PollUntilContextTimeout(ctx, definitionInterval, definitionTimeout, true, func(ctx context.Context) (bool, error) {
			list, err := j.client.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
				return false, err
			}
			// Other errors mean that the API serves the version. For example, the conversion webhook may not be ready.
			_, err = j.dynamic.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
			return !apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("wait until the API serves %s.%s/%s: %w", plural, group, version, err)
		}
	}
	return nil
}

// lookAgain surveys the objects whose definitions have just changed. The first survey only checked whether these objects exist.
func (j *job) lookAgain(ctx context.Context, v survey) error {
	changed := v.changing
	v.changing = nil
	for i, f := range j.findings {
		if !changed[f.GroupVersionKind().GroupKind()] {
			continue
		}
		var found finding
		var refused error
		err := wait.PollUntilContextTimeout(ctx, definitionInterval, schemaTimeout, true, func(ctx context.Context) (bool, error) {
			o, err := j.mapObject(f.Unstructured, mustBeServed)
			if err == nil {
				found, err = v.look(ctx, o)
			}
			refused = err
			return err == nil, nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return refused
		}
		j.findings[i] = found
	}
	return nil
}

// kept returns the definitions in the cluster that the release's chart contains and the desired chart doesn't contain.
func (j *job) kept(ctx context.Context) ([]string, error) {
	if j.past.base == nil || j.past.base.Chart == nil {
		return nil, nil
	}
	had := manifest{}
	for _, o := range j.base {
		if o.GroupVersionKind().GroupKind() == definitions {
			had = append(had, o)
		}
	}
	for _, crd := range j.past.base.Chart.CRDObjects() {
		found, err := j.mapObjects(string(crd.File.Data), mustBeServed)
		if err != nil {
			continue // the record has a third-party chart; this run doesn't change its definitions
		}
		had = append(had, found...)
	}
	has := j.want.byID()
	folder, err := j.definitionsInFolder()
	if err != nil {
		return nil, err
	}
	for _, o := range folder {
		has[o.id] = o
	}
	v := j.viewOf(true)
	var out []string
	for _, o := range had {
		if _, stays := has[o.id]; stays || o.GroupVersionKind().GroupKind() != definitions {
			continue
		}
		live, err := v.get(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o, err)
		}
		if live != nil {
			out = append(out, o.title())
		}
	}
	return out, nil
}
