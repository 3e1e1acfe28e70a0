package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller"
	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/node/logstore/agents"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/version"
)

// run runs all parts of the program until the context ends or one part fails. Then it stops the other parts and
// returns, and the kubelet restarts the program. If the API server is unavailable, run waits. Only the leading replica
// exits in that case, because another replica may take over.
func run(ctx context.Context, o *options, log *slog.Logger) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, err := o.config()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "pai-controller/" + version.Version
	place, err := o.archive()
	if err != nil {
		return err
	}
	var replaced *archive.Replaced
	place.Replaced = func(r *archive.Replaced) {
		replaced = r
		log.ErrorContext(ctx, "the archive of jobs was damaged, and another is in its place", "aside", r.Aside, "what", r.String())
	}
	store, err := archive.Open(ctx, place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	registry := newRegistry()
	watched := archive.Observe(store, registry)
	clients, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	secrets, pods := clients.CoreV1().Secrets(o.system), clients.CoreV1().Pods(o.system)
	own, logTokens, auditToken := newToken(secrets, api.TokenSecret), newToken(secrets, logapi.TokenSecret), newToken(secrets, api.AuditTokenSecret)
	tokens := []*token{own, logTokens, auditToken}
	logs := agents.New(pods, logTokens.Value)
	board, key := rendezvous.New(), func() []byte { return []byte(own.Value()) }
	c, err := controller.New(controller.Options{
		Peers: board, PeersKey: key,
		Config: config, Namespace: o.namespace, SystemNamespace: o.system, Identity: o.identity, LeaderElection: o.leaderElection,
		Workers: o.workers, QPS: float32(o.qps), TTL: o.ttl, Delivery: controller.Delivery(o.delivery), Claims: o.claims, LogBytes: o.logBytes, Store: watched, Replaced: replaced, Logs: logs,
		Log: logr.FromSlogHandler(log.Handler()), Registry: registry,
	})
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	jobs, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	tasks, err := lc.Listen(ctx, "tcp", o.codeListen)
	if err != nil {
		return errors.Join(err, jobs.Close())
	}
	log.InfoContext(ctx, "starting", "version", version.Version, "listen", jobs.Addr().String(), "tasks", tasks.Addr().String(), "identity", o.identity, "postgresql", place.Shared())
	s := server.New(server.Options{
		Store: watched, Peers: server.Peers{Board: board, Key: key, Leads: c.Leads}, Ready: ready(tokens, c.Filled, answers(watched)), Metrics: registry, MetricsAccess: o.accessFile, Token: own.Value, AuditToken: auditToken.Value,
		Logs: logs, Use: logs, GPUs: newGPUs(pods, o.accessFile), Jobs: c, Imported: c.CheckDeleted, Log: log,
	})
	// readTokens isn't in the list below, because together would stop the program as soon as readTokens returns.
	go readTokens(ctx, log, tokens)
	tellLeader(registry, c.Leads)
	tellBroken(registry, place)
	tellUsage(registry, watched, c.Leads, log)
	return together(ctx,
		c.Run,
		func(ctx context.Context) error { return s.ServeJobs(ctx, jobs) },
		func(ctx context.Context) error { return s.ServeTasks(ctx, tasks) },
		func(ctx context.Context) error { return prune(ctx, o, rest.CopyConfig(config), watched, c.Leads, log) },
		func(ctx context.Context) error { return failed(ctx, watched) })
}

// answers returns a function that checks whether the archive is available. Without the archive, jobs can't finish and
// requests fail.
func answers(store archive.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := store.Jobs(ctx, api.JobQuery{Limit: 1})
		return err
	}
}

// failed blocks until the archive fails permanently, and returns the error.
func failed(ctx context.Context, store archive.Store) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-store.Failed():
		return err
	}
}

// together runs functions until one of them returns. Then it stops the other functions and returns the error of the
// first.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(inner) }()
	}
	first := <-ended
	stopped := ctx.Err() != nil
	cancel()
	for range parts[1:] {
		<-ended
	}
	if stopped {
		return nil
	}
	return first
}
