// Package apivip assigns the virtual address of the Kubernetes API to one master. That master holds a lease, and its own API server is ready.
// In: a lease of the cluster, the API server of this machine. Out: an address on one of the machine's interfaces, and ARP packets that announce it.
//
// The program on each master queries only the local API server. A master whose API server fails therefore loses the address. The address in the
// kernel has a lifetime of seconds, which the program extends. If the program is killed or hangs, the address expires.
package apivip

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Name is the name of the program, its pods and its lease. Namespace contains the lease. The holder in the lease is the node with the address.
const (
	Name      = "pai-api-vip"
	Namespace = "kube-system"
)

// timing holds the periods that determine the duration of a failover. Another machine takes over at most lease + 2.2 × retry after the last renewal.
type timing struct {
	lease, renew, retry time.Duration // of the lease: renew is how long its holder keeps the address without a renewal
	tick                time.Duration // between two checks of the address
	lifetime            time.Duration // the lifetime of the address in the kernel, in whole seconds
	check               time.Duration // between two requests to the API server, and how long one may take
	failures            int           // how many consecutive requests may fail before the API server counts as not ready
}

var usual = timing{
	lease: 5 * time.Second, renew: 4 * time.Second, retry: 500 * time.Millisecond,
	tick: 500 * time.Millisecond, lifetime: 3 * time.Second, check: time.Second, failures: 3,
}

// Run takes part in the leader election until ctx ends. It holds the address while this machine has the lease and the local API server is ready.
func Run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet(Name, flag.ContinueOnError)
	flags.SetOutput(out)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of this machine's API server; without it, the one that the pod's environment names")
	vip := flags.String("address", "", "the virtual address, IPv4")
	own := flags.String("host-ip", os.Getenv("KUBERNETES_SERVICE_HOST"), "the machine's own address")
	node := flags.String("node", os.Getenv("NODE_NAME"), "the machine's name in the cluster")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	address, err := netip.ParseAddr(*vip)
	if err != nil || !address.Is4() {
		return fmt.Errorf("--address: %q is not an IPv4 address", *vip)
	}
	host, err := netip.ParseAddr(*own)
	if err != nil {
		return fmt.Errorf("--host-ip: %w", err)
	}
	if *node == "" {
		return errors.New("--node: the machine's name is missing")
	}
	config, err := clientConfig(*kubeconfig)
	if err != nil {
		return err
	}
	// The timeout equals the renewal deadline. When a later response arrives, another machine may already have the lease.
	config.UserAgent, config.Timeout = Name, usual.renew
	client, err := coordclient.NewForConfig(config)
	if err != nil {
		return err
	}
	ready, err := readiness(config, address)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	k := &keeper{
		link: &ethernet{address: address, own: host, lifetime: usual.lifetime},
		lock: &lock{Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: *node},
		}},
		ready: ready, timing: usual, log: log.With("address", address.String()),
	}
	return k.run(ctx)
}

// readiness returns a function that checks whether the local API server is ready. The server's certificate must contain the virtual address, because
// clients verify it.
func readiness(config *rest.Config, vip netip.Addr) (func(context.Context) error, error) {
	config = rest.CopyConfig(config)
	config.ServerName = vip.String()
	client, err := coordclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}, nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// elector returns an elector for one term. Its Run method returns when this machine loses or releases the lease.
func (k *keeper) elector() (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: Name, Lock: k.lock, ReleaseOnCancel: true,
		LeaseDuration: k.timing.lease, RenewDeadline: k.timing.renew, RetryPeriod: k.timing.retry,
		// The callbacks do nothing, because client-go may call them late, after a release. The lock decides whether the machine may hold the address.
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
}
