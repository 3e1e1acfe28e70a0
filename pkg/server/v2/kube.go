package v2

import (
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/desk"
)

func kubeRoutes() []server.Route {
	one := server.Limit{Each: 1} // they are large
	return []server.Route{
		{Method: http.MethodGet, Path: prefix + "/kubernetes/nodes", Aliases: []string{old + "/kubernetes/nodes"}, Rule: "kube.read", Serve: kubeNodes, Limit: one, In: reflect.TypeFor[kubeIn](), Out: kubeList,
			Summary: "Lists Kubernetes' nodes, a thousand at most: metadata.continue says where to go on", Errors: []string{"InvalidParametersError"}},
		{Method: http.MethodGet, Path: prefix + "/kubernetes/pods", Aliases: []string{old + "/kubernetes/pods"}, Rule: "kube.read", Serve: kubePods, Limit: one, In: reflect.TypeFor[kubeIn](), Out: kubeList,
			Summary: "Lists Kubernetes' pods, a thousand at most, without the environment of their containers", Errors: []string{"InvalidParametersError"}},
	}
}

type kubeIn struct {
	Namespace     string `query:"namespace"`
	LabelSelector string `query:"labelSelector"`
	FieldSelector string `query:"fieldSelector"`
	Limit         int    `query:"limit"`
	Continue      string `query:"continue"`
}

// kubeList is what Kubernetes' own description describes.
var kubeList = reflect.TypeFor[map[string]any]()

func kubeQuery(c *server.Call) (desk.KubeQuery, error) {
	in := kubeIn{}
	err := c.Decode(&in)
	return desk.KubeQuery(in), err
}

func kubeNodes(c *server.Call) error {
	q, err := kubeQuery(c)
	if err != nil {
		return err
	}
	list, err := c.Desk.KubeNodes(c.Context(), q)
	if err != nil {
		return err
	}
	return c.JSON(list)
}

func kubePods(c *server.Call) error {
	q, err := kubeQuery(c)
	if err != nil {
		return err
	}
	list, err := c.Desk.KubePods(c.Context(), q)
	if err != nil {
		return err
	}
	return c.JSON(list)
}
