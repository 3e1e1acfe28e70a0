// Package web sends requests to the platform's programs that have an HTTP API, such as Prometheus.
// In: the connection to a cluster. Out: responses of the cluster's services.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
)

// Client sends requests to the programs of the platform that serve HTTP and require the password of metrics. It connects to pods as "kubectl
// port-forward" does, because the API server's proxy for services removes the Authorization header. If the platform has no password, as after a
// plain helm install, the client uses the proxy.
type Client struct {
	cluster *kube.Cluster
	client  *http.Client
}

// NoneError means that the cluster doesn't have a service.
type NoneError struct{ Service string }

// Error implements error.
func (e *NoneError) Error() string { return "no " + e.Service + " is installed" }

// New returns a client. It doesn't connect yet.
func New(c *kube.Cluster) *Client {
	w := &Client{cluster: c}
	w.client = &http.Client{Transport: &http.Transport{DialContext: w.dial, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}}
	return w
}

// Close closes idle connections, because a kubelet logs an error about each connection that isn't closed.
func (w *Client) Close() { w.client.CloseIdleConnections() }

// longest limits how many bytes of another program's error message are read.
const longest = 1024

// Get sends a GET request to a service and returns the body of the response. The caller must close the body.
func (w *Client) Get(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
	r, err := w.request(ctx, http.MethodGet, service, path, query, nil)
	if err != nil {
		return nil, err
	}
	if r == nil {
		body, err := w.byProxy(http.MethodGet, service, path, query, nil).Stream(ctx)
		if apierrors.IsNotFound(err) {
			return nil, &NoneError{service}
		}
		return body, err
	}
	return Answer(w.client, r, service)
}

// Do sends a request to a service, and returns the status and the body of the response. It returns no error for a status that reports a failure.
func (w *Client) Do(ctx context.Context, method, service, path string, query url.Values, body []byte) (status int, answer []byte, err error) {
	r, err := w.request(ctx, method, service, path, query, body)
	if err != nil {
		return 0, nil, err
	}
	if r == nil {
		result := w.byProxy(method, service, path, query, body).Do(ctx)
		answer, _ := result.Raw() // its error doesn't have the API server's message
		err := result.Error()
		if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // the API server says so, not the service
			return 0, nil, &NoneError{service}
		}
		if result.StatusCode(&status); status != 0 {
			return status, answer, nil
		}
		return 0, nil, err
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, nil, withoutAddress(err, service)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, largest))
	return resp.StatusCode, answer, err
}

// largest is the maximum size of a response of Do, in bytes.
const largest = 32 << 20

// request returns a request with the password to a pod of a service, or nil if the platform has no password.
func (w *Client) request(ctx context.Context, method, service, path string, query url.Values, body []byte) (*http.Request, error) {
	held, err := w.cluster.Client.CoreV1().Secrets(kube.SystemNamespace).Get(ctx, access.Secret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the password of metrics: %w", err)
	}
	host, err := w.pod(ctx, service)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "http", Host: host, Path: path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	r.SetBasicAuth(access.User, string(held.Data[access.KeyPassword]))
	return r, nil
}

// Answer sends a request to a service of the platform and returns the body of the response. The caller must close the body. If the service doesn't
// respond, the error is about the service and not about the API server.
func Answer(client *http.Client, r *http.Request, service string) (io.ReadCloser, error) {
	answer, err := client.Do(r)
	if err != nil {
		return nil, withoutAddress(err, service)
	}
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, longest))
		_ = answer.Body.Close()
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("%s answers %s: %s", service, answer.Status, strings.TrimSpace(string(said))))
	}
	return answer.Body, nil
}

// withoutAddress returns the error for a service that doesn't respond. The error omits the URL, because its host may not be a real address and its
// query is long.
func withoutAddress(err error, service string) error {
	if failed, is := errors.AsType[*url.Error](err); is {
		err = failed.Err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s does not answer: %v", service, err))
}

func (w *Client) byProxy(method, service, path string, query url.Values, body []byte) *rest.Request {
	r := w.cluster.Client.CoreV1().RESTClient().Verb(method).Namespace(kube.SystemNamespace).Resource("services").Name(service + ":http").SubResource("proxy").Suffix(path)
	for name, values := range query {
		for _, v := range values {
			r = r.Param(name, v)
		}
	}
	if len(body) > 0 {
		r = r.SetHeader("Content-Type", "application/json").Body(body)
	}
	return r
}

// pod returns the address of a ready pod of a service, in the form POD.NAMESPACE:PORT.
func (w *Client) pod(ctx context.Context, service string) (string, error) {
	core := w.cluster.Client.CoreV1()
	s, err := core.Services(kube.SystemNamespace).Get(ctx, service, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", &NoneError{service}
	}
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", service, err)
	}
	pods, err := core.Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(s.Spec.Selector).String()})
	if err != nil {
		return "", fmt.Errorf("look for the pods of %s: %w", service, err)
	}
	for i := range pods.Items {
		if port := portOf(s, &pods.Items[i]); port > 0 && isReady(&pods.Items[i]) {
			return fmt.Sprintf("%s.%s:%d", pods.Items[i].Name, s.Namespace, port), nil
		}
	}
	return "", apierrors.NewServiceUnavailable("none of the pods of " + service + " is ready")
}

// portOf returns the port of a pod to which a service sends HTTP requests, or 0.
func portOf(s *corev1.Service, p *corev1.Pod) int32 {
	if len(s.Spec.Selector) == 0 {
		return 0
	}
	at := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "http" })
	if at < 0 {
		return 0
	}
	target := s.Spec.Ports[at].TargetPort
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if target.StrVal != "" && port.Name == target.StrVal || target.StrVal == "" && port.ContainerPort == target.IntVal {
				return port.ContainerPort
			}
		}
	}
	return 0
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// dial connects to a port of a pod. The address has the form of pod's result.
func (w *Client) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dot := strings.LastIndexByte(host, '.')
	var number int
	if _, err := fmt.Sscan(port, &number); err != nil || dot < 0 {
		return nil, fmt.Errorf("%s is not a pod", address)
	}
	return stream.Dial(w.cluster, stream.Port{Namespace: host[dot+1:], Pod: host[:dot], Number: number}), nil
}
