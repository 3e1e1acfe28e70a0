// Package approver approves the serving certificates that kubelets request. It denies requests that violate its rule.
// In: certificate signing requests, and a ConfigMap with the machines' names and addresses. Out: approvals and denials with a reason.
//
// Kubernetes doesn't approve these requests itself, because it can't check whether an address belongs to a machine. Each decision is a single write,
// which the API server accepts only once. Several replicas may therefore run without a leader, and each may be killed at any time.
package approver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	certclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"github.com/openpai/paictl/pkg/cluster/approver/machines"
	"github.com/openpai/paictl/pkg/kube/watch"
)

const (
	workers = 4
	// startLimit limits the time for the first list of requests. If the list isn't complete by then, the program exits, so that the pod shows the
	// failure.
	startLimit = time.Minute
	// lookAgain is the interval at which a request of an unknown machine is checked again. "cluster up" may add the machine later.
	lookAgain = 5 * time.Second
	// qps and burst limit the program's API requests per second. The machines of a new cluster all request their certificates at the same time.
	qps, burst = 50, 100
)

const reason = "PaictlRule"

// Run processes certificate signing requests until ctx ends.
func Run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("pai-csr-approver", flag.ContinueOnError)
	flags.SetOutput(out)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster; without it, the one in which the program runs as a pod")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	config, err := clientConfig(*kubeconfig)
	if err != nil {
		return err
	}
	a, err := newApprover(config, slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// largest is the maximum size of a request, in bytes. A kubelet's request has about 500 bytes.
const largest = 16 << 10

// slim removes the fields of a request that the decision doesn't need. If a request is too large, slim also removes its content. Such a request is
// denied because it has no content.
func slim(csr *certv1.CertificateSigningRequest) (*certv1.CertificateSigningRequest, error) {
	csr.ManagedFields, csr.Annotations, csr.Labels, csr.Spec.Extra = nil, nil, nil, nil
	if len(csr.Spec.Request) > largest {
		csr.Spec.Request = nil
	}
	return csr, nil
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

type approver struct {
	requests   certclient.CertificateSigningRequestInterface
	configMaps coreclient.ConfigMapInterface
	log        *slog.Logger
	again      time.Duration

	store *watch.Store[*certv1.CertificateSigningRequest]
	queue workqueue.TypedRateLimitingInterface[string]

	mu      sync.Mutex
	unknown map[string]bool // nodes that were already logged as unknown
}

func newApprover(config *rest.Config, log *slog.Logger) (*approver, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.UserAgent = qps, burst, "pai-csr-approver"
	certs, err := certclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &approver{
		requests: certs.CertificateSigningRequests(), configMaps: core.ConfigMaps(machines.Namespace),
		log: log, again: lookAgain, unknown: map[string]bool{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, time.Minute)),
	}, nil
}

func (a *approver) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listed, first := make(chan struct{}), sync.Once{}
	a.store = watch.New(watch.Options[*certv1.CertificateSigningRequest, *certv1.CertificateSigningRequest]{
		Name: "certificate signing requests", Log: a.log, Keep: slim,
		Source: watch.From(a.requests, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", certv1.KubeletServingSignerName).String()}),
		Changed: func(changes []watch.Change[*certv1.CertificateSigningRequest], _ string) {
			for i := range changes {
				a.queue.Add(changes[i].Key)
			}
			first.Do(func() { close(listed) })
		},
	})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { a.store.Run(ctx) })
	start, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	select {
	case <-listed:
	case <-ctx.Done():
		return nil
	case <-start.Done():
		return fmt.Errorf("the certificate signing requests could not be listed within %s", startLimit)
	}
	a.log.InfoContext(ctx, "deciding requests", "signer", certv1.KubeletServingSignerName)
	defer a.queue.ShutDown()
	for range workers {
		wg.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// next processes the next request of the queue. It returns false when the program ends.
func (a *approver) next(ctx context.Context) bool {
	name, shutdown := a.queue.Get()
	if shutdown {
		return false
	}
	defer a.queue.Done(name)
	wait, err := a.decide(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if !apierrors.IsConflict(err) { // another program has decided; the next event has its decision
			a.log.ErrorContext(ctx, "a request waits", "request", name, "err", err)
		}
		a.queue.AddRateLimited(name)
	case wait:
		a.queue.AddAfter(name, a.again)
	default:
		a.queue.Forget(name)
	}
	return true
}

// decide approves or denies a request that has no decision yet. wait reports whether the request has to wait because its machine is unknown.
func (a *approver) decide(ctx context.Context, name string) (wait bool, err error) {
	csr, exists := a.store.Get(name)
	if !exists || len(csr.Status.Certificate) > 0 || len(csr.Status.Conditions) > 0 {
		return false, nil
	}
	v, err := judge(csr, func(node string) ([]netip.Addr, error) { return a.addresses(ctx, node) })
	if err != nil {
		return false, err
	}
	kind := certv1.CertificateDenied
	switch v.decision {
	case ignored:
		return false, nil
	case pending:
		a.tellUnknown(ctx, v.node)
		return true, nil
	case approved:
		kind = certv1.CertificateApproved
	case denied:
	}
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: v.message, LastUpdateTime: metav1.Now(),
	})
	if _, err := a.requests.UpdateApproval(ctx, name, csr, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, err
	}
	a.mu.Lock()
	delete(a.unknown, v.node)
	a.mu.Unlock()
	a.log.InfoContext(ctx, "decided", "request", name, "from", csr.Spec.Username, "decision", kind, "message", v.message)
	return false, nil
}

// addresses returns the addresses of a machine from the ConfigMap, or nil if the ConfigMap doesn't contain the machine.
func (a *approver) addresses(ctx context.Context, node string) ([]netip.Addr, error) {
	list, err := a.configMaps.Get(ctx, machines.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, known := list.Data[node]
	if !known {
		return nil, nil
	}
	out, err := machines.Addresses(value)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s, key %s: %w; paictl cluster up writes it again", machines.Namespace, machines.Name, node, err)
	}
	return out, nil
}

// tellUnknown logs once per node that the node's request waits because the node is unknown.
func (a *approver) tellUnknown(ctx context.Context, node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unknown[node] {
		return
	}
	a.unknown[node] = true
	a.log.WarnContext(ctx, "the request of a node waits: the ConfigMap of the machines doesn't have the node; if layout.yaml has it, run paictl cluster up",
		"node", node, "configmap", machines.Namespace+"/"+machines.Name)
}
