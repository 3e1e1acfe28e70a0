package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// groupVersion is the API version of Frameworks.
var groupVersion = schema.GroupVersion{Group: "frameworkcontroller.microsoft.com", Version: "v1"}

// pageSize is the number of Frameworks that one request reads.
const pageSize = 500

// Frameworks reads and writes the Frameworks of a namespace.
type Frameworks struct {
	rest      rest.Interface
	namespace string
}

// NewFrameworks returns the Frameworks of a namespace. It doesn't send a request.
func NewFrameworks(config *rest.Config, namespace string) (*Frameworks, error) {
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &groupVersion, "/apis"
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	if err := v1.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("open the API of jobs: %w", err)
	}
	own.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	own.ContentType, own.AcceptContentTypes = "application/json", "application/json"
	r, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("open the API of jobs: %w", err)
	}
	return &Frameworks{r, namespace}, nil
}

func (f *Frameworks) on(r *rest.Request, name string) *rest.Request {
	r = r.Namespace(f.namespace).Resource("frameworks")
	if name != "" {
		r = r.Name(name)
	}
	return r
}

// answer sends a request and decodes the response into an object.
func answer[T any](ctx context.Context, r *rest.Request) (*T, error) {
	result := r.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("read the API's answer: %w", err)
	}
	return out, nil
}

// Get reads the Framework with a name.
func (f *Frameworks) Get(ctx context.Context, name string) (*v1.Framework, error) {
	return answer[v1.Framework](ctx, f.on(f.rest.Get(), name))
}

// List reads all Frameworks that match a label selector, page by page.
func (f *Frameworks) List(ctx context.Context, selector string) ([]v1.Framework, error) {
	var out []v1.Framework
	next := ""
	for {
		r := f.on(f.rest.Get(), "").Param("limit", fmt.Sprint(pageSize))
		if selector != "" {
			r = r.Param("labelSelector", selector)
		}
		if next != "" {
			r = r.Param("continue", next)
		}
		page, err := answer[v1.FrameworkList](ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}

// Source lists and watches all Frameworks of the namespace.
func (f *Frameworks) Source() watch.Source {
	all := func(o metav1.ListOptions) *rest.Request {
		return f.on(f.rest.Get(), "").VersionedParams(&o, metav1.ParameterCodec)
	}
	return watch.Source{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return answer[v1.FrameworkList](ctx, all(o))
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return all(o).Watch(ctx)
		},
	}
}

// Create creates a Framework. With dryRun, the API server checks it without storing it.
func (f *Frameworks) Create(ctx context.Context, one *v1.Framework, dryRun bool) (*v1.Framework, error) {
	r := f.on(f.rest.Post(), "").Param("fieldManager", "paictl")
	if dryRun {
		r = r.Param("dryRun", metav1.DryRunAll)
	}
	body, err := json.Marshal(one)
	if err != nil {
		return nil, err
	}
	return answer[v1.Framework](ctx, r.SetHeader("Content-Type", "application/json").Body(body))
}

// Patch changes a Framework with a patch, and returns the changed Framework.
func (f *Frameworks) Patch(ctx context.Context, name string, kind types.PatchType, patch any) (*v1.Framework, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return answer[v1.Framework](ctx, f.on(f.rest.Patch(kind), name).Param("fieldManager", "paictl").Body(body))
}

// Delete removes the Framework with that UID, and doesn't remove another Framework of the same name. The controller stops its pods, and releases the
// Framework when the archive contains it. Then Kubernetes removes its Secrets.
func (f *Frameworks) Delete(ctx context.Context, name string, uid types.UID) error {
	propagation := metav1.DeletePropagationBackground
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &propagation,
	})
	if err != nil {
		return err
	}
	return f.on(f.rest.Delete(), name).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

// change is one event in the response to a watch request.
type change struct {
	Type   string       `json:"type"`
	Object v1.Framework `json:"object"`
}

// Watch calls changed with every new version of one Framework, and with nil when it is deleted. It returns when the
// connection ends, which happens after a few minutes at the latest.
func (f *Frameworks) Watch(ctx context.Context, name string, changed func(*v1.Framework)) error {
	r := f.on(f.rest.Get(), "").Param("watch", "true").Param("fieldSelector", "metadata.name="+name)
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	for d := json.NewDecoder(body); ; {
		var c change
		switch err := d.Decode(&c); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("watch the job: %w", err)
		case c.Type == "ADDED", c.Type == "MODIFIED":
			changed(&c.Object)
		case c.Type == "DELETED":
			changed(nil)
		default:
			return nil // an error, such as a version that is too old: the next watch starts over
		}
	}
}
