package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
)

const (
	prometheusPort = 9090 // of its container
	answerMax      = 16 << 20
)

// query asks Prometheus and returns the labels of each answer, with its value as "value". It uses a port forwarded to the pod: the API
// server's proxy removes the password.
func (c *Cluster) query(ctx context.Context, expression string) ([]map[string]string, error) {
	list, err := c.Kube.Client.CoreV1().Pods(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=prometheus"})
	if err != nil {
		return nil, fmt.Errorf("find Prometheus' pod: %w", err)
	}
	for i := range list.Items {
		if ready, _ := podReady(&list.Items[i]); ready {
			return c.queryPod(ctx, list.Items[i].Name, expression)
		}
	}
	return nil, errors.New("no pod of Prometheus is ready")
}

func (c *Cluster) queryPod(ctx context.Context, pod, expression string) ([]map[string]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newPipes()
	var broke error
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = stream.Serve(ctx, c.Kube, l, stream.Port{Namespace: kube.SystemNamespace, Pod: pod, Number: prometheusPort}, func(err error) { broke = err })
	}()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://prometheus/api/v1/query?query="+url.QueryEscape(expression), nil)
	if err != nil {
		return nil, err
	}
	held, err := c.Kube.Client.CoreV1().Secrets(kube.SystemNamespace).Get(ctx, access.Secret, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the password of metrics: %w", err)
	}
	if err == nil {
		r.SetBasicAuth(access.User, string(held.Data[access.KeyPassword]))
	}
	found, err := answerOf(client, r)
	cancel()
	<-served
	if err != nil && broke != nil {
		err = broke
	}
	return found, err
}

func answerOf(client *http.Client, r *http.Request) ([]map[string]string, error) {
	res, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask Prometheus: it answers %s", res.Status)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  []any             `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, res.Body, answerMax)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	}
	var out []map[string]string
	for _, one := range answer.Data.Result {
		m := one.Metric
		if m == nil {
			m = map[string]string{}
		}
		if len(one.Value) == 2 {
			m["value"] = fmt.Sprint(one.Value[1])
		}
		out = append(out, m)
	}
	return out, nil
}

// pipes is a listener inside this program: no port is opened for others on this computer.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	close(p.done)
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
