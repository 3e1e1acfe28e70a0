package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/assembly"
	servertls "github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/pkg/version"
)

// leaveTime is how long a stopping server still serves requests. The server already reports that it isn't ready, but some clients don't know that
// yet.
const leaveTime = 3 * time.Second

// run runs all parts of the program until the context ends or one of the parts fails. Then it stops the other parts and returns, and the kubelet
// restarts the program.
func run(ctx context.Context, o *options, log *slog.Logger) error {
	config, err := o.config()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "pai-server/" + version.Version
	config.QPS, config.Burst = 200, 400
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	public, err := publicAuthority(o, config, log)
	if err != nil {
		return err
	}
	var leading func(context.Context)
	if public != nil {
		leading = public.Tend
	}
	builtIn, err := template.BuiltIn()
	if err != nil {
		return err
	}
	a, err := assembly.New(assembly.Options{
		Config: config, Settings: o.settings, HistoryURL: o.history, SchedulerURL: o.scheduler, AccessFile: o.accessFile, Credentials: o.credentials, SystemNamespace: o.system, Identity: o.identity,
		Leading: leading, Audit: os.Stdout, BuiltIn: builtIn, Metrics: registry, Log: log,
	})
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	metrics, err := lc.Listen(ctx, "tcp", o.metricsListen)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "starting", "version", version.Version, "listen", o.listen, "identity", o.identity)
	leaving := make(chan struct{})
	ready := func() error {
		select {
		case <-leaving:
			return errors.New("the server is about to end")
		default:
			return a.Ready()
		}
	}
	// The parts stop only after all responses have been sent, because handlers use the parts.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	parts := slices.Concat(a.Parts(), []func(context.Context) error{
		func(inner context.Context) error {
			return plain(inner, metrics, health(registry, o.accessFile, ready), shortConnections, nil, log)
		},
		func(inner context.Context) error {
			defer end()
			until, stop := context.WithCancel(inner)
			defer stop()
			context.AfterFunc(ctx, func() {
				close(leaving)
				time.AfterFunc(leaveTime, stop)
			})
			return serve(until, o, a, public, log)
		},
	})
	err = assembly.Together(background, parts...)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// shortConnections limits the number of connections that aren't streams. Each connection uses memory, even before its client is known.
const shortConnections = 1000

// proxyConnections limits the number of connections to the pages of other services.
const proxyConnections = 500

// serve serves the requests of users. It begins as soon as it has a certificate.
func serve(ctx context.Context, o *options, a *assembly.Assembly, public *servertls.ACME, log *slog.Logger) error {
	source, err := certificates(ctx, o, log)
	if err != nil {
		return err
	}
	redirect := server.Redirect()
	if public != nil {
		redirect, source = public.Answers(redirect), public.Beside(source)
	}
	bounds := httpserver.Options{Connections: o.settings.Limits.Streams + shortConnections, Proxies: o.settings.TrustedProxies}
	l, err := servertls.Listen(ctx, o.listen, source, bounds)
	if err != nil {
		return err
	}
	parts := []func(context.Context) error{func(ctx context.Context) error { return a.Server.Serve(ctx, l, a.Server) }}
	if o.proxyListen != "" {
		bounds.Connections = proxyConnections
		pages, err := servertls.Listen(ctx, o.proxyListen, source, bounds)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		parts = append(parts, func(ctx context.Context) error { return a.Proxy.Serve(ctx, pages, a.Proxy) })
	}
	if o.redirectListen != "" {
		var lc net.ListenConfig
		to, err := lc.Listen(ctx, "tcp", o.redirectListen)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		parts = append(parts, func(ctx context.Context) error {
			return plain(ctx, to, redirect, shortConnections, o.settings.TrustedProxies, log)
		})
	}
	return assembly.Together(ctx, parts...)
}

// askAgain is the pause after a failed request to the API server.
const askAgain = 2 * time.Second

// certificates returns a source of certificates. The certificate is in a folder, or is signed by the platform's own CA. It waits while the API
// server is unavailable.
func certificates(ctx context.Context, o *options, log *slog.Logger) (servertls.Source, error) {
	if o.tls != "" {
		return servertls.NewFiles(o.tls, time.Now, func(err error) {
			log.ErrorContext(ctx, "read the certificate again; the one before is used", "error", err.Error())
		})
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for {
		authority, err := servertls.Ensure(ctx, client, time.Now())
		if err == nil {
			return servertls.NewPlatformCertificates(authority, o.settings.Hosts(), time.Now)
		}
		log.WarnContext(ctx, "waiting for the authority of the server's certificates", "error", err.Error())
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

// health returns the handler for requests from the kubelet and Prometheus.
func health(registry *prometheus.Registry, accessFile string, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /metrics", access.Metrics(accessFile, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	return mux
}

// plain serves HTTP without TLS until the context ends.
func plain(ctx context.Context, l net.Listener, h http.Handler, connections int, proxies []netip.Prefix, log *slog.Logger) error {
	return httpserver.Serve(ctx, l, h, httpserver.Options{Connections: connections, Proxies: proxies, Read: 10 * time.Second, Write: 30 * time.Second, Log: log})
}
