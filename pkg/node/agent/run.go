// Package agent implements the program pai-agent, which runs on each machine with GPUs. The agent publishes the machine's GPUs in Kubernetes, and
// gives each container only the GPUs of the container's claim. In: the machine's GPUs, and the claims of the machine's pods. Out: ResourceSlices,
// device files in containers, and errors for rejected claims.
package agent

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
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/node/agent/amdgpu"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/version"
)

type options struct {
	node, machines, probe, root, toolkit, hook, kubelet, cdi, notices, cgroups, kubeconfig, listen, access string

	restarts bool
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("pai-agent", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "name of the node that this machine is")
	fs.StringVar(&o.machines, "machines", "", "file that lists the real or simulated GPUs of each node, as JSON")
	fs.StringVar(&o.probe, "probe", "/pai-nvml", "program that reports the GPUs and their health")
	fs.StringVar(&o.root, "driver-root", "/host", "folder where the machine's root is mounted")
	fs.StringVar(&o.toolkit, "toolkit", "/nvidia-ctk", "program that reports which files of the driver containers need")
	fs.StringVar(&o.hook, "hook", "/nvidia-cdi-hook", "program that the container runtime is to run before a container with GPUs starts")
	fs.StringVar(&o.notices, "notice-folder", "/var/run/paictl/gpus", "where containers find the health of their GPUs; the same path on the machine")
	fs.StringVar(&o.kubelet, "kubelet-folder", "/var/lib/kubelet", "the kubelet's folder")
	fs.StringVar(&o.cdi, "cdi-folder", "/var/run/cdi", "where the container runtime looks for devices")
	fs.StringVar(&o.cgroups, "cgroup-folder", "/sys/fs/cgroup", "where the machine's control groups are")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server; if empty, as a pod of the cluster")
	fs.StringVar(&o.listen, "listen", ":9104", "address to answer on, with /healthz, /readyz and /metrics")
	fs.StringVar(&o.access, "access-file", "", "file with the password for /metrics; if empty, everyone may read them")
	fs.BoolVar(&o.restarts, "restart-machine", false, "restart the machine when its Node has a request for it; needs the machine's PID namespace")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.node == "":
		return nil, errors.New("--node is missing: the name of the node that this machine is")
	case o.machines == "":
		return nil, errors.New("--machines is missing: a file that says which nodes have which GPUs")
	}
	return o, nil
}

// Run runs the program pai-agent with the given arguments until ctx ends, and writes log messages to out. With the argument amdgpu, Run runs the
// program that reads AMD's GPUs.
func Run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == amdgpu.Command {
		return amdgpu.Run(ctx, args[1:], out)
	}
	o, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	config, err := o.config()
	if err != nil {
		return err
	}
	klog.SetSlogLogger(log)
	config.UserAgent = "pai-agent/" + version.Version
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	return run(ctx, o, client, l, log)
}

func (o *options) config() (*rest.Config, error) {
	if o.kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	return rest.InClusterConfig()
}

// run publishes the machine's GPUs and serves the kubelet until ctx ends.
func run(ctx context.Context, o *options, client kubernetes.Interface, l net.Listener, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	folder := filepath.Join(o.kubelet, "plugins", claim.Driver)
	machine, err := gpu.ReadMachine(o.machines, o.node)
	if err != nil {
		return err
	}
	hook := filepath.Join(folder, "nvidia-cdi-hook")
	v, err := o.vendor(machine, filepath.Join(folder, gpu.FaultsFile), filepath.Join(folder, gpu.SplitsFile), hook)
	if err != nil {
		return err
	}
	gpus, err := look(ctx, machine, v, folder, log)
	if err != nil {
		return err
	}
	root := gpus.realRoot(o.root)
	if machine.Vendor == gpu.AMD {
		root = "" // the kernel includes its driver
	} else if err := toolkit.InstallHook(o.hook, hook); err != nil {
		return fmt.Errorf("put %s where the container runtime finds it: %w", o.hook, err)
	}
	d, err := newDriver(ctx, o.node, gpus, v, folders{records: filepath.Join(folder, "claims"), orderFile: filepath.Join(folder, "orders.json"), cdi: o.cdi, notices: o.notices, cgroups: o.cgroups, root: root}, log, cancel)
	if err != nil {
		return err
	}
	d.host.restarts = o.restarts
	var accepted atomic.Pointer[kubeletplugin.Helper]
	var published atomic.Bool
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	served := make(chan error, 1)
	go func() {
		served <- httpserver.Serve(serving, l, answers(&accepted, &published, d, o.access), httpserver.Small())
	}()
	// Split GPUs before publishing devices. Splits that take longer, or that wait for a pod, continue later.
	first, cancelFirst := context.WithTimeout(ctx, firstSplits)
	d.split(first)
	cancelFirst()
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(claim.Driver), kubeletplugin.NodeName(o.node), kubeletplugin.KubeClient(client),
		kubeletplugin.PluginDataDirectoryPath(folder), kubeletplugin.RegistrarDirectoryPath(filepath.Join(o.kubelet, "plugins_registry")))
	if err != nil {
		return fmt.Errorf("offer the GPUs to the kubelet: %w", err)
	}
	defer helper.Stop()
	accepted.Store(helper)
	go d.tellContainers(ctx)
	go d.followDriver(ctx)
	go d.keepSplit(ctx)
	go func() {
		publish := func(ctx context.Context) error { return helper.PublishResources(ctx, d.resources()) }
		late := time.AfterFunc(apiPatience, func() { log.WarnContext(ctx, "waiting for the API server: the GPUs aren't published yet") })
		err := publish(ctx) // the first call returns when the API server has answered
		late.Stop()
		if err != nil {
			cancel(fmt.Errorf("publish the GPUs: %w", err))
			return
		}
		published.Store(true)
		go d.watchRequests(ctx, client)
		d.tell(ctx, client, publish)
	}()
	known, _ := gpus.cards()
	log.InfoContext(ctx, "serving", "node", o.node, "gpus", len(known), "claims", len(d.records.all()))
	select {
	case err = <-served:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

const (
	// silence is the maximum time without output of the program that reads the GPUs.
	silence = 30 * time.Second
	// firstLook is how long the agent waits for the first report.
	firstLook = 45 * time.Second
	// again is the pause before an exited program is restarted.
	again = time.Second
	// apiPatience is how long the agent waits for the API server before logging a message.
	apiPatience = 5 * time.Second
)

// look starts watching the machine's GPUs, and returns when the GPUs are known.
func look(ctx context.Context, machine gpu.Machine, v vendor, folder string, log *slog.Logger) (*monitor, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, err
	}
	m, err := openMonitor(filepath.Join(folder, "gpus.json"), bootID("/proc"), log, time.Now)
	if err != nil {
		return nil, err
	}
	m.forPods, m.parts, m.mig = machine.ForPods, int32(machine.Parts), machine.MIG
	if machine.Count == 0 {
		m.see(&gpu.Report{})
		return m, nil
	}
	if !machine.Simulated {
		m.wanted = machine.Count
	}
	go v.watch(ctx, m.see, m.unseen)
	ticker := time.NewTicker(time.Second)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				m.tick()
			}
		}
	}()
	return m, m.first(ctx, firstLook)
}

// answers returns a handler that serves metrics and health checks. The health checks report whether the agent runs, whether the kubelet has accepted
// the agent and the GPUs are published, and whether the GPUs are healthy.
func answers(accepted *atomic.Pointer[kubeletplugin.Helper], published *atomic.Bool, d *Driver, accessFile string) http.Handler {
	mux := http.NewServeMux()
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(d), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux.Handle("GET /metrics", access.Metrics(accessFile, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	ok := func(w http.ResponseWriter) { _, _ = io.WriteString(w, "ok\n") } // an error can't be reported
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		h := accepted.Load()
		if h == nil {
			http.Error(w, "the kubelet hasn't asked for the driver yet", http.StatusServiceUnavailable)
			return
		}
		switch s := h.RegistrationStatus(); {
		case s == nil:
			http.Error(w, "the kubelet hasn't asked for the driver yet", http.StatusServiceUnavailable)
		case !s.PluginRegistered:
			http.Error(w, "the kubelet refused the driver: "+s.Error, http.StatusServiceUnavailable)
		case !published.Load():
			http.Error(w, "waiting for the API server: the GPUs aren't published yet", http.StatusServiceUnavailable)
		default:
			ok(w)
		}
	})
	return mux
}
