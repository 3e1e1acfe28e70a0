package watchdog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// API is what the watchdog asks the API server. client-go would make the program five times
// as large for these three requests.
type API struct {
	URL string // https://10.96.0.1:443
	// TokenFile is read for each request: the kubelet renews it.
	TokenFile string
	Client    *http.Client
}

// accountDir is where the kubelet puts a pod's account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster returns the API of the cluster in which this pod runs.
func InCluster(getenv func(string) string, dir string) (API, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return API{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: the watchdog runs in a pod")
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return API{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return API{}, fmt.Errorf("%s/ca.crt holds no certificate", dir)
	}
	return API{
		URL:       "https://" + net.JoinHostPort(host, port),
		TokenFile: filepath.Join(dir, "token"),
		Client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			IdleConnTimeout: time.Minute,
		}},
	}, nil
}

// Ready asks /readyz.
func (a API) Ready(ctx context.Context) error { return a.get(ctx, "/readyz", nil) }

// Node is a node and where its kubelet serves.
type Node struct{ Name, Address string }

// pageSize is how many nodes are asked for at a time: 5,000 nodes in one answer are 100 MB.
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
		if err := a.get(ctx, "/api/v1/nodes?"+query.Encode(), &page); err != nil {
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

// Servers lists the addresses host:port of the API servers themselves.
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
	if err := a.get(ctx, path, &slices); err != nil {
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

// get asks for a path and decodes the answer, unless into is nil.
func (a API) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+path, nil)
	if err != nil {
		return err
	}
	if a.TokenFile != "" {
		token, err := os.ReadFile(a.TokenFile)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := a.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(text)))
	}
	if into == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
		return err
	}
	return json.NewDecoder(res.Body).Decode(into)
}
