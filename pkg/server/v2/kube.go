package v2

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
)

func kubeRoutes() []server.Route {
	one := server.Limit{Each: 1, Stream: true} // the answers are large
	return []server.Route{
		{Method: http.MethodGet, Path: prefix + "/kubernetes/nodes", Aliases: []string{old + "/kubernetes/nodes"}, Rule: "kube.read", Serve: kubeNodes, Limit: one, In: reflect.TypeFor[kubeIn](), Out: kubeList, Media: mediaJSON,
			Summary: "Lists Kubernetes' nodes; with a limit, metadata.continue begins the next page", Errors: []string{"InvalidParametersError"}},
		{Method: http.MethodGet, Path: prefix + "/kubernetes/pods", Aliases: []string{old + "/kubernetes/pods"}, Rule: "kube.read", Serve: kubePods, Limit: one, In: reflect.TypeFor[kubeIn](), Out: kubeList, Media: mediaJSON,
			Summary: "Lists Kubernetes' pods, without the environment of their containers; with a limit, metadata.continue begins the next page", Errors: []string{"InvalidParametersError"}},
	}
}

type kubeIn struct {
	Namespace     string `query:"namespace"`
	LabelSelector string `query:"labelSelector"`
	FieldSelector string `query:"fieldSelector"`
	Limit         int    `query:"limit"`
	Continue      string `query:"continue"`
}

// kubeList is the type of a Kubernetes list, which the OpenAPI document doesn't describe.
var kubeList = reflect.TypeFor[map[string]any]()

func kubeQuery(c *server.Call) (app.KubeQuery, error) {
	in := kubeIn{}
	err := c.Decode(&in)
	return app.KubeQuery(in), err
}

const mediaJSON = "application/json"

// kubeAnswer responds with a Kubernetes list that is read page by page. A single page is sent as an ordinary response. Several pages are joined into
// one list, because clients that don't request pages expect the whole list.
type kubeAnswer struct {
	call *server.Call
	flow *server.Flow // nil until there is more than one part
}

func kubeNodes(c *server.Call) error {
	q, err := kubeQuery(c)
	if err != nil {
		return err
	}
	a := kubeAnswer{call: c}
	return a.end(c.Actions.KubeNodes(c.Context(), q, func(list *corev1.NodeList) error {
		return add(&a, list, list.Items, q.Limit > 0)
	}))
}

func kubePods(c *server.Call) error {
	q, err := kubeQuery(c)
	if err != nil {
		return err
	}
	a := kubeAnswer{call: c}
	return a.end(c.Actions.KubePods(c.Context(), q, func(list *corev1.PodList) error {
		return add(&a, list, list.Items, q.Limit > 0)
	}))
}

// add adds a page to the response. items holds the objects of the page. alone means that the client requested only this page.
func add[Item any](a *kubeAnswer, list kubePart, items []Item, alone bool) error {
	if a.flow == nil && (alone || list.GetContinue() == "") {
		return a.call.JSON(list)
	}
	before := ","
	if a.flow == nil {
		a.flow, before = a.call.Flow(), ""
		kind := list.GetObjectKind().GroupVersionKind()
		if err := a.flow.Write(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`, kind.Kind, kind.Version, list.GetResourceVersion()), false); err != nil {
			return err
		}
	}
	for i := range items {
		text, err := json.Marshal(&items[i])
		if err != nil {
			return err
		}
		if err := a.flow.Write(append([]byte(before), text...), false); err != nil {
			return err
		}
		before = ","
	}
	return nil
}

// kubePart is a page of a list, with the fields that are written before the objects.
type kubePart interface {
	metav1.ListInterface
	GetObjectKind() schema.ObjectKind
}

// end completes the response. If the other pages can't be read and the response has begun, it aborts the response.
func (a *kubeAnswer) end(err error) error {
	switch {
	case a.flow == nil, err != nil && !a.flow.Begun():
		return err
	case err != nil:
		a.flow.Cut()
	}
	if err := a.flow.Write([]byte("]}"), false); err != nil {
		return err
	}
	return a.flow.Flush()
}
