package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// job is a call of Apply or Plan. job holds the data that is read before the first change.
type job struct {
	*session
	request  Request
	past     past
	manifest string // the desired manifest
	want     manifest
	base     manifest // the last manifest that was sent
	findings []finding
	kinds    []definition              // the changes of the request's definitions in the cluster
	brings   map[schema.GroupKind]bool // kinds that the chart defines
	action   string
}

func (h *helm) Apply(ctx context.Context, r Request) (Outcome, error) {
	out, err := h.apply(ctx, r)
	return out, h.explain("install", r.Name, err)
}

func (h *helm) apply(ctx context.Context, r Request) (Outcome, error) {
	j, err := h.study(ctx, r, false)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Action: j.action, Previous: j.past.previous(), Manifest: j.manifest}
	if j.action == Unchanged {
		out.Revision, out.Unproven = j.past.last.Version, j.past.proven
		return out, nil
	}
	if err := j.heal(ctx); err != nil {
		return out, err
	}
	if err := j.define(ctx); err != nil {
		return out, err
	}
	done, err := j.run(ctx)
	if done != nil {
		out.Revision, out.Manifest = done.Version, done.Manifest
	}
	return out, err
}

// study reads the current state of a release, renders the desired state, and checks whether the API accepts the desired state.
func (h *helm) study(ctx context.Context, r Request, rehearsal bool) (*job, error) {
	s, err := h.session(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	j := &job{session: s, request: r}
	if j.past, err = s.past(ctx, r.Name); err != nil {
		return nil, err
	}
	same, err := j.compare()
	if err != nil {
		return nil, err
	}
	if err := j.parse(); err != nil {
		return nil, err
	}
	if j.kinds, err = j.definitionsThatChange(ctx, j.viewOf(rehearsal)); err != nil {
		return nil, err
	}
	j.findings, err = j.viewOf(rehearsal).all(ctx, j.want)
	if err != nil {
		return nil, err
	}
	j.kube.left = map[string]bool{}
	for _, f := range j.findings {
		if f.left {
			j.kube.left[f.name] = true
			j.log.InfoContext(ctx, "a definition has more than the chart's, and is left as it is", "definition", f.name, "release", r.Name)
		}
	}
	j.action = j.decide(same)
	return j, nil
}

// compare renders the desired manifest, and reports whether the chart and the values are unchanged. Templates that generate passwords or certificates
// return a different result each time. If two renderings of the manifest differ, compare keeps the deployed manifest.
func (j *job) compare() (same bool, err error) {
	if j.past.base == nil || j.past.leaving {
		out, err := j.render(j.request, j.past.next())
		j.manifest = out.manifest
		return false, err
	}
	chart, err := prepareChart(j.request.Chart, j.request.Values)
	if err != nil {
		return false, err
	}
	if sameChart(j.past.base.Chart, chart) && sameValues(j.past.base.Config, j.request.Values) {
		out, err := j.render(j.request, j.past.again())
		if err != nil {
			return false, err
		}
		if out.manifest == j.past.base.Manifest || j.fickle(out.manifest) {
			j.manifest = j.past.base.Manifest
			return true, nil
		}
	}
	out, err := j.render(j.request, j.past.next())
	j.manifest = out.manifest
	return false, err
}

func (j *job) fickle(manifest string) bool {
	again, err := j.render(j.request, j.past.again())
	return err == nil && again.manifest != manifest
}

func (j *job) parse() (err error) {
	base := ""
	if j.past.base != nil {
		base = j.past.base.Manifest
	}
	j.brings = definedBy(j.request.Chart, j.manifest)
	if j.want, err = j.mapObjects(j.manifest, func(k schema.GroupKind) bool { return j.brings[k] }); err != nil {
		return err
	}
	j.base, err = j.mapObjects(base, func(schema.GroupKind) bool { return true })
	return err
}

// decide returns the action. same reports whether the chart and the values are unchanged.
func (j *job) decide(same bool) string {
	whole := len(j.kinds) == 0
	for _, f := range j.findings {
		whole = whole && !f.missing() && !f.changed()
	}
	switch {
	case j.past.cut:
		return Repaired
	case j.past.base == nil:
		return Installed
	case !same:
		return Upgraded
	case !whole:
		return Repaired
	}
	return Unchanged
}

// heal repairs the records and removes the objects of an interrupted run, so that Helm can continue. The caller holds the lock of the services, so no
// other run changes the release.
func (j *job) heal(ctx context.Context) error {
	if !j.past.cut {
		return nil
	}
	if j.past.leaving {
		err := j.uninstall(ctx, j.request.Name)
		j.past = past{cut: true}
		return err
	}
	j.log.InfoContext(ctx, "the last run on a release was interrupted",
		"release", j.request.Name, "revision", j.past.last.Version, "status", j.past.last.Info.Status.String())
	if err := j.undo(); err != nil {
		return fmt.Errorf("undo the unfinished revision %d: %w", j.past.last.Version, err)
	}
	if j.past.last.Info.Status == helmrelease.StatusFailed {
		return nil
	}
	j.past.last.SetStatus(helmrelease.StatusFailed, "interrupted; found by a later run of paictl")
	return j.helm().Releases.Update(j.past.last)
}

// undo removes the objects of an unfinished revision that the desired manifest doesn't contain. Helm wouldn't remove these objects, because Helm
// compares only with the deployed revision.
func (j *job) undo() error {
	attempt := j.past.attempt()
	if attempt == nil || attempt.Manifest == j.manifest {
		return nil
	}
	target := j.present()
	if j.past.base != nil {
		target = j.past.base.Manifest
	}
	if attempt.Manifest == target {
		return nil
	}
	sent, err := j.kube.Build(strings.NewReader(attempt.Manifest), false)
	if err != nil {
		return err
	}
	back, err := j.kube.Build(strings.NewReader(target), false)
	if err != nil {
		return err
	}
	_, err = j.kube.UpdateThreeWayMerge(sent, back, false)
	return err
}

// present returns the desired manifest without the objects that don't exist yet.
func (j *job) present() string {
	var b strings.Builder
	for _, f := range j.findings {
		if f.live == nil {
			continue
		}
		raw, err := f.MarshalJSON()
		if err != nil {
			continue // it was parsed from YAML
		}
		b.WriteString("---\n" + string(raw) + "\n")
	}
	return b.String()
}

// define creates the missing kinds that the chart defines. Helm creates kinds only at the first install, and ignores definitions among the templates.
// define also updates changed definitions before it changes other objects, because objects may require a new version or field.
func (j *job) define(ctx context.Context) error {
	if err := j.redefine(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(j.findings, func(f finding) bool { return f.mapping == nil }) {
		return nil
	}
	return bounded(ctx, func() error {
		for _, text := range j.definitions() {
			list, err := j.kube.Build(strings.NewReader(text), false)
			if err != nil {
				return fmt.Errorf("read a definition: %w", err)
			}
			if _, err := j.kube.Create(list); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create a definition: %w", err)
			}
			if err := j.kube.Wait(list, definitionTimeout); err != nil {
				return fmt.Errorf("wait for a definition: %w", err)
			}
			// The API serves a kind shortly after the kind is established.
			parsed, err := parseObjects(text)
			if err != nil {
				return err
			}
			for _, crd := range parsed {
				if err := j.awaitServed(ctx, crd); err != nil {
					return err
				}
			}
		}
		j.forget()
		return nil
	})
}

// definitions returns the definitions in the chart's folder crds, and the missing definitions among the templates.
func (j *job) definitions() []string {
	var out []string
	for _, crd := range j.request.Chart.CRDObjects() {
		out = append(out, string(crd.File.Data))
	}
	for _, f := range j.findings {
		if f.kind != "CustomResourceDefinition" || f.live != nil {
			continue
		}
		if raw, err := f.MarshalJSON(); err == nil {
			out = append(out, string(raw))
		}
	}
	return out
}

// run calls Helm's install or upgrade. run disables Helm's own checks of ownership and objects, because survey has already checked the objects.
// Helm's check of objects would also request the complete OpenAPI schema.
func (j *job) run(ctx context.Context) (done *helmrelease.Release, err error) {
	chart := copyChart(j.request.Chart)
	j.kube.needed = map[schema.GroupKind]bool{}
	for _, o := range j.want {
		j.kube.needed[o.GroupVersionKind().GroupKind()] = true
	}
	if len(chart.CRDObjects()) > 0 {
		defer j.forget()
	}
	err = bounded(ctx, func() (err error) {
		if j.past.base == nil {
			a := action.NewInstall(j.helm())
			a.ReleaseName, a.Namespace = j.request.Name, j.request.Namespace
			a.Replace = true // a failed or uninstalled record of that name may exist
			a.TakeOwnership, a.DisableOpenAPIValidation, a.SkipSchemaValidation = true, true, true
			a.Timeout, a.Labels = hookTimeout, j.notes()
			done, err = a.Run(chart, j.request.Values)
			return err
		}
		a := action.NewUpgrade(j.helm())
		a.Namespace, a.MaxHistory, a.Timeout = j.request.Namespace, historyMax, hookTimeout
		a.Labels = j.notes()
		a.ResetValues = true // values that aren't set come from the chart, not from the last revision
		a.TakeOwnership, a.DisableOpenAPIValidation, a.SkipSchemaValidation = true, true, true
		done, err = a.Run(j.request.Name, chart, j.request.Values)
		return err
	})
	return done, err
}
