package watchdog

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/node/podapi"
	"github.com/openpai/paictl/pkg/version"
)

// Run runs the program pai-watchdog with command-line arguments until ctx ends. It writes its log to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("pai-watchdog", flag.ContinueOnError)
	fs.SetOutput(out)
	listen := fs.String("listen", ":9101", "address to answer on, with /metrics and /healthz")
	password := fs.String("access-file", "", "file with the password for /metrics; if empty, everyone may read them")
	file := fs.String("config", "", "file with targets and intervals, as JSON")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	config, err := ReadConfig(*file)
	if err != nil {
		return err
	}
	api, err := podapi.InCluster(os.Getenv, podapi.Folder, "pai-watchdog")
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	w := New(config, API{api}, slog.New(slog.NewTextHandler(out, nil)).Warn)
	w.results.version = version.Version
	w.access = *password
	return Serve(ctx, l, w)
}

// Serve runs the watchdog and serves its metrics on a listener until ctx ends.
func Serve(ctx context.Context, l net.Listener, w *Watchdog) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.Watch(ctx)
	}()
	err := httpserver.Serve(ctx, l, w.Handler(), httpserver.Small())
	cancel()
	<-watched
	return err
}

// Handler returns a handler that serves /metrics and /healthz.
func (w *Watchdog) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.results)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", access.Metrics(w.access, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprintln(out, "ok") })
	return mux
}
