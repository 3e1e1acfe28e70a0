package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

const (
	measurers = "app.kubernetes.io/name in (agent, dcgm-exporter)"
	// portMetrics is the name of the container port that serves metrics.
	portMetrics   = "metrics"
	measureTime   = 5 * time.Second
	measuredBytes = 4 << 20
)

// gpus reads the measurements of a machine's GPUs from paictl's agent, or from NVIDIA's dcgm-exporter.
type gpus struct {
	pods       typed.PodInterface // the pods of the platform's namespace
	accessFile string             // has the password of their metrics, or empty
	http       *http.Client
}

func newGPUs(pods typed.PodInterface, accessFile string) *gpus {
	return &gpus{pods, accessFile, &http.Client{Timeout: measureTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Of implements server.GPUs. It returns the GPUs of a node with their current measurements.
func (g *gpus) Of(ctx context.Context, node string) ([]api.GPU, error) {
	address, err := g.address(ctx, node)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if g.accessFile != "" {
		password, err := access.Read(g.accessFile)
		if err != nil {
			return nil, fmt.Errorf("read the password of metrics: %w", err)
		}
		req.SetBasicAuth(access.User, password)
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask what measures the GPUs of %s: %w", node, err)
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask what measures the GPUs of %s: it answers %s", node, resp.Status)
	}
	return readGPUs(io.LimitReader(resp.Body, measuredBytes))
}

func (g *gpus) address(ctx context.Context, node string) (string, error) {
	list, err := g.pods.List(ctx, metav1.ListOptions{LabelSelector: measurers, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return "", fmt.Errorf("find the pod that measures the GPUs of %s: %w", node, err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.PodIP == "" || p.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, c := range p.Spec.Containers {
			for _, port := range c.Ports {
				if port.Name == portMetrics {
					return net.JoinHostPort(p.Status.PodIP, strconv.Itoa(int(port.ContainerPort))), nil
				}
			}
		}
	}
	return "", fmt.Errorf("nothing measures the GPUs of machine %s: %w", node, archive.ErrNotFound)
}

var (
	sample = regexp.MustCompile(`^(DCGM_FI_DEV_[A-Z_]+)\{(.*)\} (\S+)`)
	label  = regexp.MustCompile(`([A-Za-z_]+)="([^"\\]*)"`)
)

// readGPUs parses metrics in the text format of Prometheus. It ignores metrics that api.GPU doesn't contain.
func readGPUs(r io.Reader) ([]api.GPU, error) {
	out, at := []api.GPU{}, map[string]int{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m := sample.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) { // JSON can't hold them
			continue
		}
		l := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(m[2], -1) {
			l[pair[1]] = pair[2]
		}
		i, known := at[l["gpu"]]
		if !known {
			i, out = len(out), append(out, api.GPU{Index: l["gpu"], UUID: l["UUID"], Model: l["modelName"], Namespace: l["namespace"], Pod: l["pod"]})
			at[l["gpu"]] = i
		}
		switch m[1] {
		case "DCGM_FI_DEV_GPU_UTIL":
			out[i].Utilization = &v
		case "DCGM_FI_DEV_FB_USED":
			out[i].MemoryUsedMiB = &v
		case "DCGM_FI_DEV_FB_FREE":
			out[i].MemoryFreeMiB = &v
		case "DCGM_FI_DEV_POWER_USAGE":
			out[i].PowerWatts = &v
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the measurements of GPUs: %w", err)
	}
	return out, nil
}
