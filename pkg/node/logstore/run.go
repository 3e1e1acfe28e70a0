package logstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/node/meter"
)

// Run runs the program pai-logs with the given arguments until ctx ends. Run writes log messages to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o := Options{Log: slog.New(slog.NewTextHandler(out, nil)), Now: time.Now}
	fs := flag.NewFlagSet("pai-logs", flag.ContinueOnError)
	fs.SetOutput(out)
	listen := fs.String("listen", ":9103", "address to answer on, with /v1/logs, /v1/use, /metrics and /healthz")
	password := fs.String("access-file", "", "file with the password for /metrics; if empty, everyone may read them")
	token := fs.String("token-file", "", "file with the token of those who may read")
	fs.StringVar(&o.Pods, "pods", "/var/log/pods", "the kubelet's folder of logs")
	groups := fs.String("cgroup-folder", "/sys/fs/cgroup", "where the machine's control groups are")
	fs.StringVar(&o.Folder, "folder", "/var/lib/pai-logs", "where logs are kept")
	fs.StringVar(&o.Namespace, "namespace", "pai-jobs", "namespace of the jobs")
	fs.Int64Var(&o.Limits.PerTask, "per-task", 1<<30, "bytes that are kept of a task's log; the oldest are removed first")
	fs.Int64Var(&o.Limits.Total, "total", 20<<30, "bytes on the disk, of all tasks")
	fs.DurationVar(&o.Limits.Age, "age", 30*24*time.Hour, "time after which the log of a pod that is gone is removed; 0 means never")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case *token == "":
		return errors.New("--token-file is missing: without it, everyone could read logs")
	case o.Limits.PerTask <= 0 || o.Limits.Total <= 0 || o.Limits.Age < 0:
		return errors.New("--per-task, --total and --age must be above 0")
	}
	store, err := Open(o)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	return serve(ctx, l, store, NewServer(store, meter.New(*groups), *token, *password).Handler())
}

const connections = 500

// serve stores logs and serves requests until ctx ends.
func serve(ctx context.Context, l net.Listener, store *Store, h http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kept := make(chan error, 1)
	go func() { kept <- store.Run(ctx) }()
	err := httpserver.Serve(ctx, l, h, httpserver.Options{Connections: connections})
	cancel()
	if kept := <-kept; err == nil {
		err = kept
	}
	return err
}
