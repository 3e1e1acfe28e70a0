package extender

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/openpai/paictl/pkg/access"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

const (
	// maxVerb bounds a question of kube-scheduler: a pod, and the names of 10,000 nodes.
	maxVerb = 16 << 20
	// maxConfig bounds a configuration; a ConfigMap holds 1 MiB.
	maxConfig = 2 << 20
	// forwarded marks what another replica passed on, so that it isn't passed on again.
	forwarded = "X-Pai-Scheduler-Forwarded"
)

// Verbs is the handler for the kube-scheduler beside us, and for no one else. The read-only API
// is there as well, as in HiveD.
func (e *Extender) Verbs() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/extender/filter", verb(e, "filter", func(ctx context.Context, args *filterArgs) any {
		out, err := e.filter(ctx, args)
		if err != nil {
			_, text := envelope(err)
			return &filterResult{Error: text}
		}
		return out
	}))
	mux.Handle("POST /v1/extender/bind", verb(e, "bind", func(ctx context.Context, args *bindArgs) any {
		if err := e.bind(ctx, args); err != nil {
			_, text := envelope(err)
			return &bindResult{Error: text}
		}
		return &bindResult{}
	}))
	mux.Handle("POST /v1/extender/preempt", verb(e, "preempt", func(ctx context.Context, args *preemptArgs) any {
		out, err := e.victims(ctx, args)
		if err != nil {
			return err
		}
		return out
	}))
	mux.HandleFunc("GET /healthz", e.healthz)
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.Handle("GET /metrics", e.metrics())
	mux.Handle("/", e.reads())
	return mux
}

// verb decodes a question and encodes its answer, or an error with its status code.
func verb[T any](e *Extender, name string, answer func(context.Context, *T) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		defer func() { e.count.requests.WithLabelValues(name).Observe(time.Since(start).Seconds()) }()
		defer e.recoverVerb(w, name)
		var args T
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxVerb)).Decode(&args); err != nil {
			writeError(w, badRequest("the request can't be read: %v", err))
			return
		}
		out := answer(r.Context(), &args)
		if err, failed := out.(error); failed {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

// recoverVerb answers where a bug ended a decision halfway. What is known may be wrong then, so that it
// is rebuilt from the annotations of pods before the next one.
func (e *Extender) recoverVerb(w http.ResponseWriter, name string) {
	r := recover()
	if r == nil {
		return
	}
	e.log.Error("a decision ended in a bug; rebuilding the state", "verb", name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	e.count.bugs.Inc()
	e.mu.Lock()
	e.state, e.term = nil, ""
	e.mu.Unlock()
	writeError(w, fmt.Errorf("a bug of the scheduler: %v", r))
}

// API is the handler for the network of pods: who waits and what runs is for those who know the token,
// metrics for those who know their password. The kubelet knows neither.
func (e *Extender) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", e.healthz)
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.Handle("GET /metrics", access.Metrics(e.opts.AccessFile, e.metrics()))
	mux.Handle("/", access.Token(e.opts.TokenFile, e.reads(), func(w http.ResponseWriter) {
		writeError(w, &userError{http.StatusForbidden, "the scheduler answers who may read the Secret " + access.TokenSecret + " in its namespace"})
	}))
	return mux
}

func (e *Extender) metrics() http.Handler {
	return promhttp.HandlerFor(e.registry(), promhttp.HandlerOpts{})
}

// reads is what can be read.
func (e *Extender) reads() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string][]string{"paths": paths()})
	})
	get := func(path string, answer func(s *state, r *http.Request) (any, error)) {
		mux.Handle(path, e.look(answer))
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
	get(api.PathQueue, func(s *state, r *http.Request) (any, error) { return s.listQueue(r.URL.Query().Get("vc")), nil })
	get(api.PathVirtualClusters, func(s *state, _ *http.Request) (any, error) {
		return s.virtualClusters(e.active, e.problem), nil
	})
	get(api.PathNodes, func(s *state, _ *http.Request) (any, error) { return s.listNodes(), nil })
	mux.HandleFunc("POST "+api.PathValidate, e.serveValidate)
	return mux
}

// paths are those of the API, for people who ask for "/".
func paths() []string {
	return []string{
		"/v1/extender/filter", "/v1/extender/bind", "/v1/extender/preempt",
		inspectGroups, inspectCluster, inspectPhysical, inspectVirtual,
		api.PathWhy, api.PathQueue, api.PathVirtualClusters, api.PathValidate, api.PathNodes,
		"/metrics", "/healthz", "/readyz",
	}
}

// look answers from the state, or passes the question on to the leader.
func (e *Extender) look(answer func(*state, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			writeError(w, badRequest("NotImplemented: %s can only be read", r.URL.Path))
			return
		}
		if e.forward(w, r) {
			return
		}
		out, err := e.read(r, answer)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

func (e *Extender) read(r *http.Request, answer func(*state, *http.Request) (any, error)) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return nil, errNotLeading
	}
	return answer(e.state, r)
}

func (e *Extender) serveValidate(w http.ResponseWriter, r *http.Request) {
	if e.forward(w, r) {
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfig))
	if err != nil {
		writeError(w, badRequest("the configuration can't be read: %v", err))
		return
	}
	out, err := e.validateNext(r.Context(), string(text))
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// forward passes a question on to the pod that leads, if that is another one.
func (e *Extender) forward(w http.ResponseWriter, r *http.Request) bool {
	e.mu.Lock()
	leading := e.state != nil
	e.mu.Unlock()
	if leading || e.lease == nil || r.Header.Get(forwarded) != "" {
		return false
	}
	leader := e.lease.leader()
	if leader == "" || leader == e.opts.Identity {
		return false
	}
	pod := e.podObject(e.opts.Namespace + "/" + leader)
	if pod == nil || pod.Status.PodIP == "" {
		return false
	}
	target := &url.URL{Scheme: "http", Host: net.JoinHostPort(pod.Status.PodIP, e.opts.Port)}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Set(forwarded, "1")
			if token, err := access.Read(e.opts.TokenFile); err == nil { // who asked is known already
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

// healthz fails if a decision never ends.
func (e *Extender) healthz(w http.ResponseWriter, r *http.Request) {
	free := make(chan struct{})
	go func() {
		e.mu.Lock()
		close(free)
		e.mu.Unlock() // only to see that it can be had
	}()
	select {
	case <-free:
		fmt.Fprintln(w, "ok")
	case <-r.Context().Done():
	case <-time.After(4 * time.Second):
		http.Error(w, "busy", http.StatusInternalServerError)
	}
}

// readyz says whether this replica could lead; one that doesn't is ready, too.
func (e *Extender) readyz(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	config, problem := e.active, e.problem
	e.mu.Unlock()
	switch {
	case !e.synced():
		http.Error(w, "pods, nodes and the configuration are being read", http.StatusServiceUnavailable)
	case config == nil && problem != "":
		http.Error(w, problem, http.StatusServiceUnavailable)
	case config == nil:
		http.Error(w, "there is no ConfigMap "+e.opts.ConfigMap, http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

// listNodes are the nodes of the configuration.
func (s *state) listNodes() api.Nodes {
	out := api.Nodes{Items: []api.Node{}}
	for _, name := range s.core.Nodes() {
		if n := s.nodes[name]; n != nil {
			out.Items = append(out.Items, n.report)
		}
	}
	return out
}
