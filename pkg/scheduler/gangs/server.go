package gangs

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

const (
	// maxConfig is the maximum size of a configuration in bytes. A ConfigMap can contain 1 MiB.
	maxConfig = 2 << 20
	// forwarded is the header of a forwarded request. Such a request isn't forwarded again.
	forwarded = "X-Pai-Scheduler-Forwarded"
)

// API returns the handler for the pod network. Reading the queue and the running gangs requires the token, and reading metrics
// requires the password. Health checks require neither, because the kubelet has no credentials.
func (b *Store) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", b.healthz)
	mux.HandleFunc("GET /readyz", b.readyz)
	mux.Handle("GET /metrics", access.Metrics(b.opts.AccessFile, b.metrics()))
	mux.Handle("/", access.Token(b.opts.TokenFile, b.reads(), func(w http.ResponseWriter) {
		writeError(w, &userError{http.StatusForbidden, "the scheduler requires the right to read the Secret " + access.TokenSecret + " in its namespace"})
	}))
	return mux
}

func (b *Store) metrics() http.Handler {
	return promhttp.HandlerFor(b.registry(), promhttp.HandlerOpts{})
}

func (b *Store) reads() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string][]string{"paths": paths()})
	})
	get := func(path string, answer func(s *state, r *http.Request) (any, error)) {
		mux.Handle(path, b.look(answer))
	}
	get(inspectGroups+"{name...}", func(s *state, r *http.Request) (any, error) {
		if r.PathValue("name") == "" {
			return s.inspectGroups(), nil
		}
		return s.inspectGroup(r.PathValue("name"), r.URL.Query().Get("vc"))
	})
	get(inspectCluster, func(s *state, _ *http.Request) (any, error) {
		return clusterStatus{s.core.Physical(), s.core.Virtual()}, nil
	})
	get(inspectPhysical, func(s *state, _ *http.Request) (any, error) { return s.core.Physical(), nil })
	get(inspectVirtual+"{vc...}", func(s *state, r *http.Request) (any, error) {
		if vc := r.PathValue("vc"); vc != "" {
			return s.inspectVirtual(vc)
		}
		return s.core.Virtual(), nil
	})
	get(api.PathWhy+"{path...}", func(s *state, r *http.Request) (any, error) {
		g, err := s.find(r.PathValue("path"), r.URL.Query().Get("vc"))
		if err != nil {
			return nil, err
		}
		return s.why(g), nil
	})
	get(api.PathQueue, func(s *state, r *http.Request) (any, error) {
		q, err := queueQuery(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return s.listQueue(q), nil
	})
	get(api.PathVirtualClusters, func(s *state, _ *http.Request) (any, error) {
		return s.virtualClusters(b.active, b.problem), nil
	})
	get(api.PathNodes, func(s *state, _ *http.Request) (any, error) { return s.listNodes(), nil })
	mux.HandleFunc("POST "+api.PathValidate, b.serveValidate)
	mux.HandleFunc("POST "+api.PathOutlook, b.serveOutlook)
	return mux
}

// paths returns the paths of the API, which are the response to "/".
func paths() []string {
	return []string{
		inspectGroups, inspectCluster, inspectPhysical, inspectVirtual,
		api.PathWhy, api.PathQueue, api.PathOutlook, api.PathVirtualClusters, api.PathValidate, api.PathNodes,
		"/metrics", "/healthz", "/readyz",
	}
}

// look returns a handler that creates the response from the state, or forwards the request to the leader.
func (b *Store) look(answer func(*state, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			writeError(w, badRequest("NotImplemented: %s can only be read", r.URL.Path))
			return
		}
		if b.forward(w, r) {
			return
		}
		out, err := b.read(r, answer)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

func (b *Store) read(r *http.Request, answer func(*state, *http.Request) (any, error)) (out any, err error) {
	if !b.locked(func(s *state) { out, err = answer(s, r) }) {
		return nil, errNotLeading
	}
	if out == nil && err == nil {
		return nil, errBug
	}
	return out, err
}

func (b *Store) serveValidate(w http.ResponseWriter, r *http.Request) {
	if b.forward(w, r) {
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfig))
	if err != nil {
		writeError(w, badRequest("the configuration can't be read: %v", err))
		return
	}
	out, err := b.validateNext(r.Context(), string(text))
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// forward forwards a request to the leader's pod if this replica isn't the leader. It reports whether it did.
func (b *Store) forward(w http.ResponseWriter, r *http.Request) bool {
	b.mu.Lock()
	leading := b.state != nil
	b.mu.Unlock()
	election := b.opts.Election
	if leading || r.Header.Get(forwarded) != "" || election.Leader() == "" || election.Leader() == election.Identity() {
		return false
	}
	// kube-scheduler's identity in the lease is HOSTNAME_UUID. The host name is the name of the pod.
	leader := election.Leader()
	if i := strings.LastIndexByte(leader, '_'); i > 0 {
		leader = leader[:i]
	}
	pod := b.podObject(b.opts.Namespace + "/" + leader)
	if pod == nil || pod.Status.PodIP == "" {
		return false
	}
	target := &url.URL{Scheme: "http", Host: net.JoinHostPort(pod.Status.PodIP, b.opts.Port)}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Set(forwarded, "1")
			if token, err := access.Read(b.opts.TokenFile); err == nil { // this replica has already authorized the request
				p.Out.Header.Set(access.TokenHeader, token)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			writeError(w, fmt.Errorf("%w, and %s, which does, doesn't answer: %w", errNotLeading, leader, err))
		},
	}
	proxy.ServeHTTP(w, r)
	return true
}

// healthz fails if a decision hangs. It waits for the lock to detect this.
func (b *Store) healthz(w http.ResponseWriter, r *http.Request) {
	free := make(chan struct{})
	go func() {
		b.mu.Lock()
		close(free)
		b.mu.Unlock() // the lock is needed only to detect that it is available
	}()
	select {
	case <-free:
		fmt.Fprintln(w, "ok")
	case <-r.Context().Done():
	case <-time.After(4 * time.Second):
		http.Error(w, "busy", http.StatusInternalServerError)
	}
}

// readyz reports whether this replica could be the leader. A replica that isn't the leader is also ready.
func (b *Store) readyz(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	config, problem := b.active, b.problem
	b.mu.Unlock()
	switch {
	case !b.synced():
		http.Error(w, "pods, nodes and the configuration are being read", http.StatusServiceUnavailable)
	case config == nil && problem != "":
		http.Error(w, problem, http.StatusServiceUnavailable)
	case config == nil:
		http.Error(w, "there is no ConfigMap "+b.opts.ConfigMap, http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

func (s *state) listNodes() api.Nodes {
	out := api.Nodes{Items: []api.Node{}}
	for _, name := range s.core.Nodes() {
		if n := s.nodes[name]; n != nil {
			report := n.report
			report.Used = s.core.UsedDevices(name)
			out.Items = append(out.Items, report)
		}
	}
	return out
}
