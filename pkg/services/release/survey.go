package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/hint"
)

const (
	// surveyLimit is the maximum number of concurrent requests about objects.
	surveyLimit = 16
	// fieldManager is the field manager of dry runs and of custom resource definitions. No other objects are stored with this field manager.
	fieldManager = "paictl"
	// goneTimeout is the time limit for the deletion of objects by an earlier stop. Pods may take 30 seconds to exit.
	goneTimeout  = time.Minute
	goneInterval = 250 * time.Millisecond
)

// finding is the current and the desired state of an object of a release.
type finding struct {
	object
	live  *unstructured.Unstructured // nil if it doesn't exist
	after *unstructured.Unstructured // nil if sending it would change nothing
	// left means that the cluster's definition contains more than the chart's definition and is kept.
	left bool
}

func (f finding) missing() bool { return f.live == nil && f.mapping != nil }
func (f finding) changed() bool { return f.live != nil && f.after != nil }

// survey compares the desired objects with the cluster: it reports for each object whether it exists, how it would change, and whether the API
// accepts the change. survey uses server-side dry runs, so a rejected manifest changes no object. base is the last sent manifest. base is empty
// before the first run.
type survey struct {
	*session
	release string
	base    map[id]object
	// creates holds the namespaces that the release itself creates.
	creates map[string]bool
	// rehearsal means that the survey is for a plan. The survey then doesn't wait, and accepts that the release's namespace is missing.
	rehearsal bool
	// upgrade and downgrade are the options of the request.
	upgrade, downgrade bool
	// changing holds the kinds whose definitions are about to change. The survey doesn't check objects of these kinds.
	changing map[schema.GroupKind]bool
	// brings holds the kinds that the chart defines.
	brings map[schema.GroupKind]bool
}

// viewOf returns a survey of the cluster before the job's first change.
func (j *job) viewOf(rehearsal bool) survey {
	v := survey{session: j.session, release: j.request.Name, base: j.base.byID(), creates: map[string]bool{}, rehearsal: rehearsal,
		upgrade: j.request.Upgrade, downgrade: j.request.Downgrade, changing: map[schema.GroupKind]bool{}, brings: j.brings}
	for _, o := range j.want {
		if o.kind == "Namespace" && o.group == "" {
			v.creates[o.name] = true
		}
	}
	for _, d := range j.kinds {
		v.changing[definedKind(d.want)] = true
	}
	return v
}

// all checks all objects of a manifest concurrently.
func (v survey) all(ctx context.Context, want manifest) ([]finding, error) {
	out, errs := make([]finding, len(want)), make([]error, len(want))
	var group errgroup.Group
	group.SetLimit(surveyLimit)
	for i, o := range want {
		group.Go(func() error {
			out[i], errs[i] = v.look(ctx, o)
			if v.unserved(o, errs[i]) {
				o.mapping = nil
				out[i], errs[i] = finding{object: o}, nil
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, in the order of the manifest
	return out, oneLine(errs)
}

// unserved reports whether the API rejected an object because the kind was removed and the chart defines the kind. The API lists a kind briefly after
// its definition was removed, but rejects objects of the kind.
func (v survey) unserved(o object, err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || o.mapping == nil || !v.brings[o.GroupVersionKind().GroupKind()] {
		return false
	}
	details := status.ErrStatus.Details
	return apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) && details != nil && details.Name == ""
}

func (v survey) resource(o object) dynamic.ResourceInterface {
	r := v.dynamic.Resource(o.mapping.Resource)
	if o.namespace == "" {
		return r
	}
	return r.Namespace(o.namespace)
}

func (v survey) look(ctx context.Context, o object) (finding, error) {
	f := finding{object: o}
	if o.mapping == nil {
		return f, nil
	}
	target := v.owned(o.Unstructured)
	_, known := v.base[o.id]
	if v.changing[o.GroupVersionKind().GroupKind()] {
		live, err := v.get(ctx, o)
		if err == nil && live != nil && !known {
			err = v.adoptable(o, live)
		}
		f.live = live
		return f, err
	}
	if !known {
		// The object usually doesn't exist. Trying to create the object saves a request.
		err := v.tryCreate(ctx, o, target)
		if !apierrors.IsAlreadyExists(err) {
			return f, v.refusal(o, err)
		}
	}
	live, err := v.get(ctx, o)
	if err != nil {
		return f, fmt.Errorf("read %s: %w", o, err)
	}
	if live == nil {
		return f, v.refusal(o, v.tryCreate(ctx, o, target))
	}
	if !known {
		if err := v.adoptable(o, live); err != nil {
			return f, err
		}
	}
	f.live = live
	if o.GroupVersionKind().GroupKind() == definitions {
		if f.left, err = v.keepsMore(o, live); f.left || err != nil {
			return f, err
		}
	}
	f.after, err = v.tryPatch(ctx, o, target, live)
	return f, v.refusal(o, err)
}

// get returns the live object, or nil. get waits while the object is being deleted, because the deletion would also affect a new object with the same
// name.
func (v survey) get(ctx context.Context, o object) (*unstructured.Unstructured, error) {
	var live *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(ctx, goneInterval, goneTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		live, err = v.resource(o).Get(ctx, o.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			live = nil
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if live.GetDeletionTimestamp() == nil {
			return true, nil
		}
		if v.rehearsal {
			live = nil
		}
		return v.rehearsal, nil
	})
	if live != nil && wait.Interrupted(err) && ctx.Err() == nil {
		return nil, hint.Errorf("stop the pods that use it, or see what its finalizers wait for: kubectl get "+kubectlName(o)+" -o yaml",
			"it is still being deleted after %s", goneTimeout)
	}
	return live, err
}

func (v survey) tryCreate(ctx context.Context, o object, target *unstructured.Unstructured) error {
	_, err := v.resource(o).Create(ctx, target, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict, FieldManager: fieldManager,
	})
	return err
}

// tryPatch returns the changed object, or nil if the object wouldn't change.
func (v survey) tryPatch(ctx context.Context, o object, target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	base := target
	if b, ok := v.base[o.id]; ok {
		base = b.Unstructured
	}
	patch, kind, err := threeWay(base, target, live)
	if err != nil || patch == nil {
		return nil, err
	}
	after, err := v.resource(o).Patch(ctx, o.name, kind, patch, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict, FieldManager: fieldManager,
	})
	if err != nil || sameObject(live, after) {
		return nil, err
	}
	return after, nil
}

// sameObject reports whether two objects are equal. sameObject ignores fields that the server changes on each write.
func sameObject(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(withoutBookkeeping(a), withoutBookkeeping(b))
}

func withoutBookkeeping(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(c.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	unstructured.RemoveNestedField(c.Object, "status")
	return c.Object
}

// These labels and annotations mark the owner of an object.
const (
	managedBy          = "app.kubernetes.io/managed-by"
	partOf             = "app.kubernetes.io/part-of"
	instance           = "app.kubernetes.io/instance"
	ownerName          = "meta.helm.sh/release-name"
	ownerNamespace     = "meta.helm.sh/release-namespace"
	helmName           = "Helm"
	platform           = "paictl"
	resourcePolicy     = "helm.sh/resource-policy"
	resourcePolicyKeep = "keep"
)

// owned returns a copy of the object with Helm's labels and annotations for the owner.
func (v survey) owned(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	labels := out.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedBy] = helmName
	out.SetLabels(labels)
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ownerName], annotations[ownerNamespace] = v.release, v.namespace
	out.SetAnnotations(annotations)
	return out
}

// adoptable returns an error unless the release may adopt an existing object. The object may already belong to the release, such as a kept volume or
// an object of an interrupted install. The object may also belong to the platform and to no other release.
func (v survey) adoptable(o object, live *unstructured.Unstructured) error {
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	name, namespace := annotations[ownerName], annotations[ownerNamespace]
	switch {
	case name == v.release && namespace == v.namespace:
		return nil
	case name != "":
		return hint.Errorf("stop that service first, or give the object another name in the values",
			"%s already exists and belongs to release %s/%s", o, namespace, name)
	case labels[partOf] == platform && (labels[instance] == "" || labels[instance] == v.release):
		return nil
	}
	return hint.Errorf("delete it if it is not needed (kubectl delete "+kubectlName(o)+"), or give the service another name or namespace",
		"%s already exists and is not this service's", o)
}

func kubectlName(o object) string {
	s := o.mapping.Resource.GroupResource().String() + " " + o.name
	if o.namespace != "" {
		s += " -n " + o.namespace
	}
	return s
}
