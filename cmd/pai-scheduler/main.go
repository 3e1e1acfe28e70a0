//go:build pai_scheduler

// Command pai-scheduler is Kubernetes' kube-scheduler with a plugin that allocates cells to gangs of pods, and with an API for people. It accepts
// all flags of kube-scheduler.
//
// It is built with the libraries of one release of Kubernetes. The file kubernetes.mod pins them, and the build passes it to the go command as
// -modfile.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/cli"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // as above
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/scheduler/gangs"
	"github.com/openpai/paictl/pkg/scheduler/plugin"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/version"
)

// namespaceFile is the file in which the kubelet stores the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// connections is the maximum number of simultaneous clients of the API.
const connections = 500

// stopLimit is how long requests in progress may take after the program was stopped.
const stopLimit = 5 * time.Second

func main() { os.Exit(cli.Run(command())) }

// program holds the values of the flags, and the objects that are created from these values.
type program struct {
	gangs.Options
	listen   string
	reserve  time.Duration
	debug    bool
	election *gangs.Election
	log      *slog.Logger
	// made is the state that all profiles share. The first profile creates it.
	made *gangs.Store
}

func command() *cobra.Command {
	p := &program{}
	opts := options.NewOptions()
	cmd := &cobra.Command{
		Use:          "pai-scheduler",
		Short:        "kube-scheduler, with gangs, virtual clusters and cells",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(opts.Logs, opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return p.run(ctx, opts)
		},
	}
	fs := opts.Flags.FlagSet("cells")
	fs.StringVar(&p.listen, "listen", ":9096", "address of the API for people and of /metrics, /healthz and /readyz")
	fs.StringVar(&p.Namespace, "namespace", "", "namespace of the configuration; empty means that of the pod, or pai-system")
	fs.StringVar(&p.ConfigMap, "config-map", "scheduler-configuration", "ConfigMap with the configuration of cells")
	fs.StringVar(&p.ConfigKey, "config-key", "hivedscheduler.yaml", "key of the configuration in it")
	fs.StringVar(&p.AccessFile, "access-file", "", "file with the password for /metrics; if empty, everyone may read them")
	fs.StringVar(&p.TokenFile, "token-file", "", "file with the token that opens the API for people; if empty, everyone may read it")
	fs.DurationVar(&p.reserve, "reservation-after", queue.ReservationAfter, "how long a guaranteed gang waits before free cells of its virtual cluster are reserved for it; 0 means forever")
	fs.BoolVar(&p.debug, "debug", false, "log each decision")
	verflag.AddFlags(opts.Flags.FlagSet("global"))
	for _, set := range opts.Flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	return cmd
}

// complete sets the values that depend on the environment of the program.
func (p *program) complete() error {
	if p.Namespace == "" {
		p.Namespace = "pai-system"
		if text, err := os.ReadFile(namespaceFile); err == nil {
			p.Namespace = strings.TrimSpace(string(text))
		}
	}
	if p.ReservationAfter = p.reserve; p.reserve <= 0 {
		p.ReservationAfter = -1
	}
	var err error
	if _, p.Port, err = net.SplitHostPort(p.listen); err != nil {
		return fmt.Errorf("--listen %q is not host:port", p.listen)
	}
	level := slog.LevelInfo
	if p.debug {
		level = slog.LevelDebug
	}
	p.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	p.election = gangs.NewElection(time.Now)
	p.Election = p.election
	return nil
}

// run does the same as kube-scheduler's own command. In addition, it watches the lock of the leader election, and runs the shared state.
func (p *program) run(ctx context.Context, opts *options.Options) error {
	if err := p.complete(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cc, sched, err := app.Setup(ctx, opts, app.WithPlugin(plugin.Name, p.plugin), app.WithPlugin(plugin.ClaimsName, plugin.NewClaims))
	if err != nil {
		return err
	}
	if p.made == nil {
		return fmt.Errorf("no profile of the configuration enables the plugin %s", plugin.Name)
	}
	var served []string
	for i := range cc.ComponentConfig.Profiles {
		served = append(served, cc.ComponentConfig.Profiles[i].SchedulerName)
	}
	p.made.Serve(served)
	if election := cc.LeaderElection; election != nil {
		p.election.Follow(election.Lock, election.RenewDeadline)
		election.Lock = p.election
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", p.listen)
	if err != nil {
		return err
	}
	p.log.InfoContext(ctx, "starting", "version", version.Version, "api", listener.Addr().String())
	go func() {
		cancel(httpserver.Serve(ctx, listener, p.made.API(), httpserver.Options{Connections: connections, Grace: stopLimit, Log: p.log}))
	}()
	go func() { cancel(p.made.Run(ctx)) }()
	err = app.Run(ctx, cc, sched)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// plugin creates the plugin of a profile. The first call creates the shared state.
func (p *program) plugin(ctx context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	if p.made == nil {
		client, err := client(handle.KubeConfig())
		if err != nil {
			return nil, err
		}
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
		events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "pai-scheduler"})
		p.Claims = utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation)
		queue := plugin.NewQueue(handle, klog.FromContext(ctx))
		p.made = gangs.New(client, handle.SharedInformerFactory(), queue, p.Options, p.log, events, time.Now)
	}
	return plugin.New(p.made, handle), nil
}

// client returns a client with a high rate limit for bindings, so that a gang of a thousand pods is bound in seconds. The API server's own fairness
// limits the rate, too.
func client(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 2000
	config.UserAgent = "pai-scheduler/" + version.Version
	// Protobuf needs half the processor time of JSON, in the client and in the server.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open the cluster: %w", err)
	}
	return c, nil
}
