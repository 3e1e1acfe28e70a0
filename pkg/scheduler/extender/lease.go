package extender

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// bindTimeout bounds one binding, and is what must be left of the Lease when it begins.
	bindTimeout = 3 * time.Second
	// leasePoll is how often the Lease is read.
	leasePoll = time.Second
)

// holding is what the Lease said when it was read.
type holding struct {
	holder  string
	renewed time.Time     // by the clock of the holder
	length  time.Duration // for which the holder may rely on it
	since   time.Time     // when the holder got it
	seen    time.Time     // by our clock: when this renewal was seen first
}

// lease follows the election of kube-scheduler, whose name there is HOSTNAME_UUID.
type lease struct {
	client          kubernetes.Interface
	namespace, name string
	identity        string // our host name, which is that of the pod
	now             func() time.Time

	mu       sync.Mutex
	last     holding
	previous holding // the last one of another holder
}

// read asks the API server.
func (l *lease) read(ctx context.Context) error {
	got, err := l.client.CoordinationV1().Leases(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the lease %s: %w", l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := holding{seen: l.now()}
	if err == nil {
		now.fill(&got.Spec)
	}
	if now.holder == l.last.holder && now.renewed.Equal(l.last.renewed) {
		now.seen = l.last.seen
	}
	if now.holder != l.last.holder {
		l.previous = l.last
	}
	l.last = now
	return nil
}

func (h *holding) fill(spec *coordinationv1.LeaseSpec) {
	if spec.HolderIdentity != nil {
		h.holder = *spec.HolderIdentity
	}
	if spec.RenewTime != nil {
		h.renewed = spec.RenewTime.Time
	}
	if spec.LeaseDurationSeconds != nil {
		h.length = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	if spec.AcquireTime != nil {
		h.since = spec.AcquireTime.Time
	}
}

// term names the time for which the kube-scheduler beside us leads, and "" if that isn't sure for as long
// as margin. Both programs run on one machine and have one clock.
func (l *lease) term(margin time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mine(l.last.holder) || l.now().Add(margin).After(l.last.renewed.Add(l.last.length)) {
		return ""
	}
	return l.last.holder + " " + l.last.since.Format(time.RFC3339Nano)
}

func (l *lease) mine(holder string) bool { return strings.HasPrefix(holder, l.identity+"_") }

// leader returns the host name of the holder, "" if there is none.
func (l *lease) leader() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := strings.LastIndexByte(l.last.holder, '_'); i > 0 {
		return l.last.holder[:i]
	}
	return ""
}

// settle returns how long to wait before pods are listed, so that no binding of the predecessor
// is still under way. One that let its Lease run out has none.
func (l *lease) settle() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if p := l.previous; p.holder != "" && !l.mine(p.holder) && p.length > bindTimeout && now.Sub(p.seen) >= p.length {
		return 0
	}
	return max(0, bindTimeout-now.Sub(l.last.since))
}
