package watchdog

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/openpai/paictl/pkg/node/podapi"
)

// API sends the watchdog's requests to the API server.
type API struct{ *podapi.API }

// Ready requests /readyz.
func (a API) Ready(ctx context.Context) error { return a.Read(ctx, "/readyz", nil) }

// Node is a node and its kubelet's address.
type Node struct{ Name, Address string }

// pageSize is the number of nodes in one request. 5,000 nodes in one response would have 100 MB.
const pageSize = 250

// Nodes lists the nodes of the cluster.
func (a API) Nodes(ctx context.Context) ([]Node, error) {
	var out []Node
	next := ""
	for {
		var page nodeList
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		if next != "" {
			query.Set("continue", next)
		}
		if err := a.Read(ctx, "/api/v1/nodes?"+query.Encode(), &page); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for _, item := range page.Items {
			if address := item.address(); address != "" {
				out = append(out, Node{Name: item.Metadata.Name, Address: address})
			}
		}
		if next = page.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}

type nodeList struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []nodeItem `json:"items"`
}

type nodeItem struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

func (n nodeItem) address() string {
	for _, a := range n.Status.Addresses {
		if a.Type == "InternalIP" {
			return a.Address
		}
	}
	return ""
}

// Servers returns the addresses of the individual API servers as host:port.
func (a API) Servers(ctx context.Context) ([]string, error) {
	var slices struct {
		Items []struct {
			Endpoints []struct {
				Addresses []string `json:"addresses"`
			} `json:"endpoints"`
			Ports []struct {
				Port int `json:"port"`
			} `json:"ports"`
		} `json:"items"`
	}
	path := "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=" + url.QueryEscape("kubernetes.io/service-name=kubernetes")
	if err := a.Read(ctx, path, &slices); err != nil {
		return nil, fmt.Errorf("list the API servers: %w", err)
	}
	var out []string
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			for _, port := range slice.Ports {
				for _, address := range endpoint.Addresses {
					out = append(out, net.JoinHostPort(address, strconv.Itoa(port.Port)))
				}
			}
		}
	}
	return out, nil
}
