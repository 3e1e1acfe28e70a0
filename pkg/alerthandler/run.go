package alerthandler

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/version"
)

// Name is the name of the program and of its lease.
const Name = "pai-alert-handler"

// Another replica takes over if the lease isn't renewed for leaseTime. The leader stops if it can't renew the lease for renewTime.
const (
	leaseTime = 15 * time.Second
	renewTime = 10 * time.Second
	askTime   = 2 * time.Second
)

// Run runs the program with its command-line arguments until ctx ends, and logs to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet(Name, flag.ContinueOnError)
	fs.SetOutput(out)
	listen := fs.String("listen", ":9095", "address to answer on, with /alerts, /metrics, /healthz and /readyz")
	file := fs.String("config", "", "file with the policies, as JSON")
	password := fs.String("access-file", "", "file with the password for /metrics; if empty, everyone may read them")
	token := fs.String("token-file", "", "file with the token that Alertmanager sends; without it no alert is taken")
	notices := fs.String("notifications", "", "file with the configuration of notifications, as JSON; empty turns them off")
	credentials := fs.String("credentials", "", "folder with the secrets of notifications, one file each")
	prometheus := fs.String("prometheus", "", "URL of Prometheus, for weekly reports; empty means that the cluster has no Prometheus")
	kubeconfig := fs.String("kubeconfig", "", "kubeconfig of the cluster; empty means the account of the pod")
	namespace := fs.String("namespace", kube.JobNamespace, "namespace of the jobs")
	system := fs.String("system-namespace", kube.SystemNamespace, "namespace of the lease")
	identity := fs.String("identity", os.Getenv("POD_NAME"), "name of this replica in the lease; empty means the host name")
	controller := fs.String("job-controller", "http://"+api.Service+"."+kube.SystemNamespace+":9097", "URL of the job controller, which stores the audit and the history of jobs; empty means through the API server")
	debug := fs.Bool("debug", false, "log alerts that are left alone")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	data, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("read the policies: %w", err)
	}
	policies, err := policy.Read(data)
	if err != nil {
		return fmt.Errorf("the policies in %s: %w", *file, err)
	}
	var tell *notify.Config
	if *notices != "" {
		if tell, err = readNotify(*notices, *credentials); err != nil {
			return err
		}
	}
	config, err := clientConfig(*kubeconfig)
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = Name + "/" + version.Version
	// These limits allow the handler to handle a thousand alerts in half a minute.
	config.QPS, config.Burst = 40, 80
	level := slog.LevelInfo
	if *debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
	archive, err := openAudit(config, *controller)
	if err != nil {
		return err
	}
	h, err := New(Options{Config: config, JobNamespace: *namespace, Policies: policies, Notify: tell, SystemNamespace: *system, Audit: archive, AuditLines: out, Log: log,
		Reports: ReportOptions{JobController: *controller, Prometheus: *prometheus, AccessFile: *password}})
	if err != nil {
		return err
	}
	if *identity == "" {
		if *identity, err = os.Hostname(); err != nil {
			return err
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "starting", "version", version.Version, "listen", l.Addr().String(), "policies", len(policies.Policies))
	return h.Serve(ctx, l, ServeOptions{AccessFile: *password, TokenFile: *token, SystemNamespace: *system, Identity: *identity})
}

func readNotify(file, credentials string) (*notify.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of notifications: %w", err)
	}
	c, err := notify.Read(data, credentials)
	if err != nil {
		return nil, fmt.Errorf("the configuration of notifications in %s: %w", file, err)
	}
	return c, nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// ServeOptions configure the HTTP server of a Handler and the leader election.
type ServeOptions struct {
	// AccessFile contains the password for /metrics. TokenFile contains the token that Alertmanager sends.
	AccessFile, TokenFile string
	SystemNamespace       string
	Identity              string
}

// Serve watches the objects and serves HTTP on a listener until ctx ends. It carries out Actions while this replica holds the lease.
func (h *Handler) Serve(ctx context.Context, l net.Listener, o ServeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	errs := make(chan error, 3)
	for _, part := range []func() error{
		func() error { return h.Run(ctx) },
		func() error { return h.elect(ctx, o) },
		func() error { return httpserver.Serve(ctx, l, h.handler(o), httpserver.Small()) },
	} {
		all.Go(func() { errs <- part() })
	}
	err := <-errs
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// elect runs the leader election, and calls Lead whenever this replica holds the lease.
func (h *Handler) elect(ctx context.Context, o ServeOptions) error {
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: o.SystemNamespace, Name: Name}, Client: h.core.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity}}
	for ctx.Err() == nil {
		ended := make(chan struct{})
		var began atomic.Bool
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: askTime, ReleaseOnCancel: false, Name: Name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(held context.Context) {
					began.Store(true)
					defer close(ended)
					h.Lead(held)
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return fmt.Errorf("stand for election: %w", err)
		}
		e.Run(ctx)
		if began.Load() {
			<-ended // no step of this term runs in the next one
		}
	}
	return nil
}

// handler returns the HTTP handler for Alertmanager, Prometheus and the kubelet.
func (h *Handler) handler(o ServeOptions) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /alerts", access.Bearer(o.TokenFile, http.HandlerFunc(h.ServeAlerts)))
	mux.Handle("GET /metrics", access.Metrics(o.AccessFile, promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if unread := h.unread(); len(unread) > 0 {
			http.Error(w, "the API server hasn't listed these yet: "+strings.Join(unread, ", "), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
