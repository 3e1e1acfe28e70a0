package release

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/kube"
)

// connection holds the data that all calls for a cluster share. connection reads the API's discovery only once, and pools connections.
type connection struct {
	cluster   *kube.Cluster
	config    *rest.Config
	log       *slog.Logger
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper

	loading      sync.Mutex
	capabilities *chartutil.Capabilities
}

func connect(c *kube.Cluster, log *slog.Logger) (*connection, error) {
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = warnings{log}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open the cluster of context %s: %w", c.Context, err)
	}
	cached := memory.NewMemCacheClient(client)
	return &connection{
		cluster: c, config: config, log: log, discovery: cached,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached),
	}, nil
}

// load reads the API's discovery once. The discovery client doesn't support contexts, so the request continues after ctx has ended.
func (c *connection) load(ctx context.Context) (*chartutil.Capabilities, error) {
	type answer struct {
		caps *chartutil.Capabilities
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		caps, err := c.ask()
		done <- answer{caps, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-done:
		return a.caps, a.err
	}
}

func (c *connection) ask() (*chartutil.Capabilities, error) {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.capabilities != nil {
		return c.capabilities, nil
	}
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for its version: %w", err)
	}
	// If an API group is unavailable, charts that don't use the group can still be installed.
	apis, err := action.GetVersionSet(c.discovery)
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for its resources: %w", err)
	}
	c.capabilities = &chartutil.Capabilities{
		APIVersions: apis,
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	return c.capabilities, nil
}

// forget makes the next call read the API's discovery again. forget is called when a chart has added kinds.
func (c *connection) forget() {
	c.loading.Lock()
	defer c.loading.Unlock()
	c.capabilities = nil
	c.mapper.Reset()
}

// session is a single call. Requests end with the call's context, although Helm doesn't support contexts.
type session struct {
	*connection
	namespace string
	bound     *rest.Config
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	kube      *client
	caps      *chartutil.Capabilities
}

func (c *connection) session(ctx context.Context, namespace string) (*session, error) {
	caps, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{connection: c, namespace: namespace, caps: caps, bound: c.boundTo(ctx)}
	if s.client, err = kubernetes.NewForConfig(kube.Protobuf(s.bound)); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(s.bound); err != nil {
		return nil, err
	}
	kc := helmkube.New(s)
	kc.Namespace, kc.Log = namespace, c.debug
	s.kube = &client{Client: kc}
	return s, nil
}

// helm returns a new configuration for one action, because Helm's configurations can't be used concurrently.
func (s *session) helm() *action.Configuration {
	records := driver.NewSecrets(s.client.CoreV1().Secrets(s.namespace))
	records.Log = s.debug
	store := storage.Init(records)
	store.MaxHistory, store.Log = historyMax, s.debug
	caps := *s.caps
	return &action.Configuration{
		RESTClientGetter: s, KubeClient: s.kube, Releases: store, Capabilities: &caps, Log: s.debug,
		HookOutputFunc: func(_, _, _ string) io.Writer { return io.Discard },
	}
}

// These four methods implement Helm's RESTClientGetter.

func (s *session) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(s.bound), nil }

func (s *session) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return s.discovery, nil
}

func (s *session) ToRESTMapper() (meta.RESTMapper, error) { return s.mapper, nil }

func (s *session) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{}
	overrides.Context.Namespace = s.namespace
	return clientcmd.NewDefaultClientConfig(s.cluster.Raw, overrides)
}

func (c *connection) debug(format string, args ...any) {
	c.log.Debug("helm", "message", fmt.Sprintf(format, args...))
}

// warnings logs the API server's warnings. Without a handler, client-go would print warnings to stderr.
type warnings struct{ log *slog.Logger }

func (w warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.log.Warn("the API server warns", "text", text)
	}
}

// boundTo returns a configuration whose requests end when ctx ends.
func (c *connection) boundTo(ctx context.Context) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundTripper{ctx, next} })
	return config
}

type boundTripper struct {
	ctx  context.Context // the context of the call that all requests belong to
	next http.RoundTripper
}

func (b boundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(b.ctx, func() { cancel(b.ctx.Err()) })
	release := func() { stop(); cancel(nil) }
	resp, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = boundBody{resp.Body, release}
	return resp, nil
}

type boundBody struct {
	io.ReadCloser
	release func()
}

func (b boundBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
