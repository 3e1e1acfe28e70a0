// Package agents queries the program that stores the logs of a machine and measures the resource use of the machine's containers. In: the name of the
// machine, a pod and its container. Out: the response, or an error. The error reports whether the agent or the log doesn't exist, or whether the
// agent is temporarily unavailable.
package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

var (
	// ErrBadQuery means that the agent rejected a request as invalid.
	ErrBadQuery = errors.New("bad query")
)

const (
	remembered = 30 * time.Second // how long an agent's address is cached
	// absence is the cache time of the result "no agent" for a machine. absence is short because a new agent may start at any moment.
	absence = time.Second
	// renewal is how long a machine counts as a machine with an agent after the agent's last response. The machine has no agent while the agent's pod is
	// being replaced.
	renewal  = 5 * time.Minute
	dialTime = 5 * time.Second
	// headTime limits the time until a response begins. headTime is longer than the maximum time that an agent waits for lines, which is 30 seconds.
	headTime  = 45 * time.Second
	maxReason = 4 << 10
	maxUse    = 4 << 20
)

// Agents sends requests to the agents of a cluster.
type Agents struct {
	pods  corev1client.PodInterface
	token func() string
	http  *http.Client
	now   func() time.Time

	mu       sync.Mutex
	known    map[string]place     // by machine
	answered map[string]time.Time // by machine: the time of its agent's last answer
}

type place struct {
	address string // empty: without an agent
	coming  bool   // its pod has no address yet
	until   time.Time
}

// New returns the Agents of a cluster. pods are the pods in the platform's namespace. token returns the key for signing requests, or "" if the key is
// unknown.
func New(pods corev1client.PodInterface, token func() string) *Agents {
	return &Agents{pods: pods, token: token, now: time.Now, known: map[string]place{}, answered: map[string]time.Time{}, http: &http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialTime}).DialContext,
			ResponseHeaderTimeout: headTime, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4,
		},
		// A signature is valid for only one agent.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get requests a page of a container's log from a machine's agent. The caller closes the body of the response.
func (a *Agents) Get(ctx context.Context, node, uid, container string, query url.Values) (*http.Response, error) {
	return a.ask(ctx, node, logapi.Path(uid, container), query)
}

// Use requests the resource use of all job containers on a machine.
func (a *Agents) Use(ctx context.Context, node string) ([]logapi.Use, error) {
	resp, err := a.ask(ctx, node, logapi.UsePath, nil)
	if errors.Is(err, logapi.ErrNoLog) || errors.Is(err, logapi.ErrNoAgent) {
		return nil, logapi.ErrUnmeasured
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	out := []logapi.Use{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxUse)).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the answer of the agent on %s: %w", node, err)
	}
	return out, nil
}

func (a *Agents) ask(ctx context.Context, node, path string, query url.Values) (*http.Response, error) {
	address, err := a.address(ctx, node)
	if err != nil {
		return nil, err
	}
	to := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	logapi.Sign(req, a.token(), a.now())
	resp, err := a.http.Do(req)
	if err != nil {
		a.forget(node)
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", logapi.ErrAway, err)
	}
	a.hasAnswered(node)
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	why := strings.TrimSpace(string(text))
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, logapi.ErrNoLog
	case http.StatusBadRequest:
		return nil, fmt.Errorf("%w: %s", ErrBadQuery, why)
	case http.StatusUnauthorized, http.StatusForbidden:
		// An upgrade replaces the job controller before the agents. An agent of another release may require another form of signature.
		a.forget(node)
		return nil, fmt.Errorf("%w: the agent on %s refuses the job controller (%d %s); if it stays so after an upgrade, run: paictl service start -n %s", logapi.ErrAway, node, resp.StatusCode, why, logapi.Service)
	}
	return nil, fmt.Errorf("the agent on %s answers %d: %s", node, resp.StatusCode, why)
}

// address returns the address of a machine's agent. address returns ErrNoAgent if the machine has no agent, and ErrAway while the agent is being
// replaced.
func (a *Agents) address(ctx context.Context, node string) (string, error) {
	a.mu.Lock()
	p, ok := a.known[node]
	a.mu.Unlock()
	if !ok || a.now().After(p.until) {
		list, err := a.pods.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + logapi.Service, FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return "", fmt.Errorf("look for the agent on %s: %w", node, err)
		}
		p = placeOf(list.Items, node)
		p.until = a.now().Add(remembered)
		if p.address == "" {
			p.until = a.now().Add(absence)
		}
		a.mu.Lock()
		a.known[node] = p
		a.mu.Unlock()
	}
	switch {
	case p.address != "":
		return p.address, nil
	case p.coming || a.answeredLately(node):
		return "", logapi.ErrAway
	}
	return "", logapi.ErrNoAgent
}

func (a *Agents) hasAnswered(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered[node] = a.now()
}

func (a *Agents) answeredLately(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.answered[node]
	return ok && a.now().Sub(at) <= renewal
}

func (a *Agents) forget(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, node)
}

func placeOf(pods []corev1.Pod, node string) place {
	out := place{}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName != node {
			continue
		}
		out.coming = true
		if p.DeletionTimestamp != nil || p.Status.PodIP == "" || p.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, c := range p.Spec.Containers {
			for _, port := range c.Ports {
				if port.Name == logapi.PortName {
					out.address = net.JoinHostPort(p.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))
					return out
				}
			}
		}
	}
	return out
}
