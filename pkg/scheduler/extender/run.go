package extender

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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/version"
)

// namespaceFile is where the kubelet puts a pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Flags are the program's arguments.
type Flags struct {
	Options
	Kubeconfig string
	// Listen serves the read-only API, ExtenderListen the verbs of kube-scheduler.
	Listen, ExtenderListen string
	Debug                  bool
}

// ParseFlags reads the program's arguments.
func ParseFlags(args []string, out io.Writer) (*Flags, error) {
	f := &Flags{}
	fs := flag.NewFlagSet("pai-scheduler", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&f.Listen, "listen", ":9096", "address of the read-only API and of /metrics, /healthz and /readyz")
	fs.StringVar(&f.ExtenderListen, "extender-listen", "127.0.0.1:9095", "address where kube-scheduler, beside this program, asks for decisions")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the account of the pod")
	fs.StringVar(&f.Namespace, "namespace", "", "namespace of the configuration and the lease; empty means that of the pod, or pai-system")
	fs.StringVar(&f.ConfigMap, "config-map", "scheduler-configuration", "ConfigMap with the configuration")
	fs.StringVar(&f.ConfigKey, "config-key", "hivedscheduler.yaml", "key of the configuration in it")
	fs.StringVar(&f.Lease, "lease", "pai-scheduler", "lease for which the kube-scheduler beside this program is elected; empty means that there is only one")
	fs.StringVar(&f.Identity, "identity", "", "what the name of that kube-scheduler in the lease begins with; empty means the host name")
	fs.StringVar(&f.AccessFile, "access-file", "", "file with the password that opens /metrics; empty means that everybody may read them")
	fs.StringVar(&f.TokenFile, "token-file", "", "file with the token that opens the read-only API; empty means that everybody may read it")
	fs.BoolVar(&f.Debug, "debug", false, "log each decision")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return f, f.complete()
}

// complete fills in what depends on where the program runs.
func (f *Flags) complete() error {
	if f.Namespace == "" {
		f.Namespace = "pai-system"
		if text, err := os.ReadFile(namespaceFile); err == nil {
			f.Namespace = strings.TrimSpace(string(text))
		}
	}
	var err error
	if f.Identity == "" {
		if f.Identity, err = os.Hostname(); err != nil {
			return fmt.Errorf("read the host name: %w", err)
		}
	}
	if _, f.Port, err = net.SplitHostPort(f.Listen); err != nil {
		return fmt.Errorf("--listen %q is not host:port", f.Listen)
	}
	return nil
}

// config says where the API server is.
func (f *Flags) config() (*rest.Config, error) {
	if f.Kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", f.Kubeconfig)
}

// Run is the program pai-scheduler with its arguments; it logs to out until ctx ends.
func Run(ctx context.Context, args []string, out io.Writer) error {
	f, err := ParseFlags(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if f.Debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
	config, err := f.config()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	var lc net.ListenConfig
	verbs, err := lc.Listen(ctx, "tcp", f.ExtenderListen)
	if err != nil {
		return err
	}
	reads, err := lc.Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return errors.Join(err, verbs.Close())
	}
	log.InfoContext(ctx, "starting", "version", version.Version, "extender", verbs.Addr().String(), "api", reads.Addr().String(), "lease", f.Lease, "identity", f.Identity)
	return Start(ctx, config, f.Options, log, verbs, reads)
}

// Start runs an extender on two listeners until ctx ends.
func Start(ctx context.Context, config *rest.Config, opts Options, log *slog.Logger, verbs, reads net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config = rest.CopyConfig(config)
	// A gang of a thousand pods is bound in seconds; the API server's own fairness is the limit.
	config.QPS, config.Burst = 1000, 2000
	config.UserAgent = "pai-scheduler/" + version.Version
	// Half the work of JSON, at both ends.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("open the cluster: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "pai-scheduler"})
	e := New(client, opts, log, events, time.Now)
	failed := make(chan error, 3)
	serve := func(l net.Listener, h http.Handler) {
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
		context.AfterFunc(ctx, func() {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), bindTimeout)
			defer cancel()
			_ = srv.Shutdown(grace) // the program ends with it
		})
		go func() { failed <- srv.Serve(l) }()
	}
	serve(verbs, e.Verbs())
	serve(reads, e.API())
	go func() { failed <- e.Work(ctx) }()
	err = <-failed
	stopped := ctx.Err() != nil
	cancel()
	for range 2 {
		<-failed
	}
	if stopped || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Work watches the cluster and does what is to be done until ctx ends.
func (e *Extender) Work(ctx context.Context) error {
	if err := e.startWatching(ctx); err != nil {
		return err
	}
	e.work.run(ctx)
	e.follow(ctx)
	return ctx.Err()
}
