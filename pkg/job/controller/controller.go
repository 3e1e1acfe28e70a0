// Package controller runs jobs. It watches Frameworks and their pods, asks pkg/job/controller/machine for the next step, writes the result to the API,
// and carries it out.
// In: the API of a cluster, an archive. Out: pods, statuses, peers, events, metrics, history.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// name is the controller's name in events and metrics. leaseName is the name of the lease that the replicas share.
const (
	name      = "pai-controller"
	leaseName = "job-controller"
)

// Controller is one replica. The replicas elect a leader, which does the work. The other replicas keep their caches up to date.
type Controller struct {
	o       Options
	metrics *metrics
	leader  atomic.Value // string
	filled  atomic.Bool  // the caches have been filled
	list    atomic.Pointer[list]
	events  *eventSink
	// vanished signals that Frameworks may have been deleted without an end in the archive. Its buffer holds one signal.
	vanished chan struct{}
}

// New checks the options and returns a Controller. It doesn't connect or start anything yet.
func New(o Options) (*Controller, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registry)
	if err != nil {
		return nil, err
	}
	return &Controller{o: o, metrics: m, events: newEventSink(), vanished: make(chan struct{}, 1)}, nil
}

// Leader returns the identity of the leading replica, or "" if it is unknown.
func (c *Controller) Leader() string {
	id, _ := c.leader.Load().(string)
	return id
}

// Filled reports whether all jobs have been read once, so that this replica could lead.
func (c *Controller) Filled() bool { return c.filled.Load() }

// Run runs the controller until the context ends. It returns an error if this replica loses the lease. The program must then exit, because
// another replica leads. While the API server doesn't respond, Run waits.
func (c *Controller) Run(ctx context.Context) error {
	log.SetLogger(c.o.Log)
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1.AddToScheme(s)); err != nil {
		return err
	}
	config := c.restConfig()
	api, err := client.NewWithWatch(config, client.Options{Scheme: s})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	mgr, err := c.manager(config, s)
	if err != nil {
		return err
	}
	caches, err := newCaches(api, c.o.Namespace)
	if err != nil {
		return err
	}
	list, err := newList(&c.o, config, caches)
	if err != nil {
		return err
	}
	r := &reconciler{
		o: c.o, api: api, pods: clients.CoreV1(), cache: caches, metrics: c.metrics, recorder: mgr.GetEventRecorder(name),
		entries: entries{m: map[string]*entry{}, begun: map[string]bool{}}, rules: newRuleBook(c.metrics), policy: c.o.policy, now: time.Now, began: time.Now(),
		vanished: c.vanished, refilled: newGate(), quick: rate.NewLimiter(quickWrites, 2*quickWrites), events: c.events,
	}
	if c.o.Replaced == nil {
		r.refilled.close()
	}
	r.logs = newLogSaver(r)
	if c.o.Delivery == DeliverAuto {
		caches.machines.changed = func(mount bool, why string) {
			c.o.Log.Info("how the runtime is delivered to pods", "imageVolume", mount, "why", why)
		}
	}
	if err := r.register(mgr); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := caches.start(ctx); err != nil {
		return nil
	}
	c.filled.Store(true)
	c.list.Store(list)
	if !c.o.LeaderElection {
		c.leader.Store(c.o.Identity)
	}
	if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run the controller: %w", err)
	}
	return nil
}

// restConfig returns the configuration for the API. It has a separate rate limit, and counts requests.
func (c *Controller) restConfig() *rest.Config {
	config := rest.CopyConfig(c.o.Config)
	config.QPS, config.Burst = c.o.QPS, int(2*c.o.QPS)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	config.UserAgent = name
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(c.metrics.count)
	return config
}

func (c *Controller) manager(config *rest.Config, s *runtime.Scheme) (manager.Manager, error) {
	o := manager.Options{
		Scheme: s, Logger: c.o.Log, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: c.o.LeaderElection, LeaderElectionReleaseOnCancel: true,
	}
	if c.o.LeaderElection {
		lock, err := c.lock()
		if err != nil {
			return nil, err
		}
		o.LeaderElectionResourceLockInterface = lock
	}
	mgr, err := manager.New(config, o)
	if err != nil {
		return nil, fmt.Errorf("set the controller up: %w", err)
	}
	return mgr, nil
}

// register adds the parts that run only while this replica leads.
func (r *reconciler) register(mgr manager.Manager) error {
	yes := true
	ctrl, err := controller.New(name, mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: r.o.Workers, SkipNameValidation: &yes,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Minute),
	})
	if err != nil {
		return fmt.Errorf("set the controller up: %w", err)
	}
	for _, s := range r.sources() {
		if err := ctrl.Watch(s); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	for _, run := range []manager.RunnableFunc{r.runRules, r.runEvents, r.runRemoved, r.runRefill, r.logs.run} {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("set the controller up: %w", err)
		}
	}
	return nil
}
