package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
)

// Cluster holds the state that checks examine. The needs of a check determine which fields are set. Unknown fields are nil.
type Cluster struct {
	// Config is the configuration in the folder Dir. Spec describes its machines, if paictl has installed the cluster.
	Config *config.Cluster
	Dir    string
	Spec   *engine.Spec
	// Mistakes lists mistakes in the folder that don't affect the list of machines.
	Mistakes config.Findings
	// Inspection holds the output of the scripts on the machines.
	Inspection *cluster.Inspection
	// Kube is the connection to the API. Jobs is the client for jobs. Platform is the client for services.
	Kube     *kube.Cluster
	Jobs     *job.Client
	Platform *services.Platform
	// Now returns the time of the operator's clock.
	Now func() time.Time
	// Image is the image of the doctor's pods. JobImage is the image of the end-to-end jobs.
	Image, JobImage string

	// owner is the value "user@host, pid" that identifies this run on its objects.
	owner    string
	apiErr   error
	pods     *probe
	nodes    lazy[[]corev1.Node]
	allPods  lazy[[]corev1.Pod]
	slices   lazy[[]resourceapi.ResourceSlice]
	jobs     lazy[[]v1.Framework]
	statuses lazy[[]services.Status]
	revision lazy[*store.Copy]
}

// lazy runs a query only once, even if several checks need the result.
type lazy[T any] struct {
	mu    sync.Mutex
	asked bool
	value T
	err   error
}

// get returns the result of ask. If a check's time limit interrupts ask, get doesn't store the result, and the next call runs ask again.
func (l *lazy[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		value, err := ask(ctx)
		if err != nil && ctx.Err() != nil {
			return value, err
		}
		l.value, l.err, l.asked = value, err, true
	}
	return l.value, l.err
}

// pageSize is the maximum number of objects in one response.
const pageSize = 1000

// NoAPI records the reason why the API can't be reached.
func (c *Cluster) NoAPI(err error) { c.apiErr = err }

// Nodes returns the nodes in the API.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	return c.nodes.get(ctx, func(ctx context.Context) ([]corev1.Node, error) {
		list, err := c.Kube.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the nodes: %w", err)
		}
		return list.Items, nil
	})
}

// AllPods returns the pods of all namespaces.
func (c *Cluster) AllPods(ctx context.Context) ([]corev1.Pod, error) {
	return c.allPods.get(ctx, func(ctx context.Context) ([]corev1.Pod, error) {
		var out []corev1.Pod
		o := metav1.ListOptions{Limit: pageSize}
		for {
			list, err := c.Kube.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
			if err != nil {
				return nil, fmt.Errorf("list the pods: %w", err)
			}
			out = append(out, list.Items...)
			if o.Continue = list.Continue; o.Continue == "" {
				return out, nil
			}
		}
	})
}

// Slices returns the ResourceSlices of agents and drivers. It returns an empty list if the API server doesn't support ResourceSlices.
func (c *Cluster) Slices(ctx context.Context) ([]resourceapi.ResourceSlice, error) {
	return c.slices.get(ctx, func(ctx context.Context) ([]resourceapi.ResourceSlice, error) {
		list, err := c.Kube.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the GPUs that agents publish: %w", err)
		}
		return list.Items, nil
	})
}

// Frameworks returns the jobs. It returns an empty list if the API server doesn't support Frameworks.
func (c *Cluster) Frameworks(ctx context.Context) ([]v1.Framework, error) {
	return c.jobs.get(ctx, func(ctx context.Context) ([]v1.Framework, error) {
		list, err := c.Jobs.Frameworks.List(ctx, "")
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return list, err
	})
}

// Services returns the states of the platform's services.
func (c *Cluster) Services(ctx context.Context) ([]services.Status, error) {
	return c.statuses.get(ctx, func(ctx context.Context) ([]services.Status, error) { return c.Platform.Status(ctx) })
}

// Pushed returns the cluster's copy of the configuration, or nil if no configuration was pushed.
func (c *Cluster) Pushed(ctx context.Context) (*store.Copy, error) {
	return c.revision.get(ctx, func(ctx context.Context) (*store.Copy, error) {
		copied, err := store.New(c.Kube.Client).Pull(ctx)
		if errors.Is(err, store.ErrNone) {
			return nil, nil
		}
		return copied, err
	})
}

func (c *Cluster) machines() []*machine {
	var out []*machine
	if c.Spec == nil || c.Inspection == nil {
		return nil
	}
	for _, n := range c.Spec.Nodes {
		if l := c.Inspection.Machines[n.Hostname]; l != nil && l.Err == nil {
			out = append(out, &machine{Node: n, InspectedMachine: l, rows: l.More})
		}
	}
	return out
}

// machine is a machine that responded to the query. rows holds the rows of its response for the doctor.
type machine struct {
	*engine.Node
	*cluster.InspectedMachine
	rows [][]string
}

// all returns the rows of a kind with at least n more fields, without the kind.
func (m *machine) all(kind string, n int) (out [][]string) {
	for _, r := range m.rows {
		if r[0] == kind && len(r) > n {
			out = append(out, r[1:])
		}
	}
	return out
}

// value returns the field after prefix in the first row that begins with prefix, or "".
func (m *machine) value(prefix ...string) string {
	for _, r := range m.rows {
		if len(r) > len(prefix) && slices.Equal(r[:len(prefix)], prefix) {
			return r[len(prefix)]
		}
	}
	return ""
}

// joined reports whether the machine's own state shows that it is a member of the cluster.
func (c *Cluster) joined(name string) bool {
	m := c.status(name)
	return m != nil && m.State != cluster.StateOutside && m.State != cluster.StateUnreachable
}

// status returns a machine's status in Look, or nil if the status is unknown.
func (c *Cluster) status(name string) *cluster.MachineStatus {
	if c.Inspection == nil || c.Inspection.Status == nil {
		return nil
	}
	for i := range c.Inspection.Status.Machines {
		if c.Inspection.Status.Machines[i].Host == name {
			return &c.Inspection.Status.Machines[i]
		}
	}
	return nil
}

// Fresh returns the same cluster without any cached state.
func (c *Cluster) Fresh() *Cluster {
	return &Cluster{Config: c.Config, Dir: c.Dir, Mistakes: c.Mistakes, Spec: c.Spec, Kube: c.Kube, Jobs: c.Jobs, Platform: c.Platform, Now: c.Now, Image: c.Image, JobImage: c.JobImage}
}
