// Package agent is the program pai-agent, which runs on each machine with GPUs: it tells Kubernetes which GPUs there are, and hands
// each container those of its claim and no others.
// In: the machine's GPUs, the claims of its pods. Out: ResourceSlices, device files in containers, refused claims.
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
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/agent/gpu"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/version"
)

// options are those of the command line.
type options struct {
	node, simulated, kubelet, cdi, cgroups, kubeconfig, listen string
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("pai-agent", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "name of the node that this machine is")
	fs.StringVar(&o.simulated, "simulated", "", "file that says which nodes pretend to have GPUs, as JSON")
	fs.StringVar(&o.kubelet, "kubelet-folder", "/var/lib/kubelet", "the kubelet's folder")
	fs.StringVar(&o.cdi, "cdi-folder", "/var/run/cdi", "where the container runtime looks for devices")
	fs.StringVar(&o.cgroups, "cgroup-folder", "/sys/fs/cgroup", "where the machine's control groups are")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server; empty means as a pod of the cluster")
	fs.StringVar(&o.listen, "listen", ":9104", "address to answer on, with /healthz and /readyz")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.node == "":
		return nil, errors.New("--node is missing: the name of the node that this machine is")
	case o.simulated == "":
		return nil, errors.New("--simulated is missing: real GPUs can't be handed out yet")
	}
	return o, nil
}

// Run is the program pai-agent with its arguments; it logs to out until ctx ends.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	klog.SetSlogLogger(log)
	config, err := o.config()
	if err != nil {
		return err
	}
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

// run serves the kubelet until ctx ends.
func run(ctx context.Context, o *options, client kubernetes.Interface, l net.Listener, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gpus, err := gpu.ReadSimulated(o.simulated, o.node)
	if err != nil {
		return err
	}
	folder := filepath.Join(o.kubelet, "plugins", claim.Driver)
	d, err := newDriver(o.node, gpus, filepath.Join(folder, "claims"), o.cdi, o.cgroups, log, cancel)
	if err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(claim.Driver), kubeletplugin.NodeName(o.node), kubeletplugin.KubeClient(client),
		kubeletplugin.PluginDataDirectoryPath(folder), kubeletplugin.RegistrarDirectoryPath(filepath.Join(o.kubelet, "plugins_registry")))
	if err != nil {
		return fmt.Errorf("offer the GPUs to the kubelet: %w", err)
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, d.resources()); err != nil {
		return fmt.Errorf("publish the GPUs: %w", err)
	}
	log.InfoContext(ctx, "serving", "node", o.node, "gpus", len(gpus), "claims", len(d.records.of))
	srv := &http.Server{Handler: health(helper), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = context.Cause(ctx)
		_ = srv.Close() // the program ends with it
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// health answers that the agent runs, and whether the kubelet has accepted it.
func health(h *kubeletplugin.Helper) http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter) { _, _ = io.WriteString(w, "ok\n") } // an error reaches no one
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch s := h.RegistrationStatus(); {
		case s == nil:
			http.Error(w, "the kubelet hasn't asked for the driver yet", http.StatusServiceUnavailable)
		case !s.PluginRegistered:
			http.Error(w, "the kubelet refused the driver: "+s.Error, http.StatusServiceUnavailable)
		default:
			ok(w)
		}
	})
	return mux
}
