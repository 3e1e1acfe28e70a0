package controller

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	"github.com/openpai/paictl/pkg/kube"
)

// Options configure a controller. If a comment ends with a value, that value is the default for the zero value.
type Options struct {
	Config          *rest.Config
	Namespace       string        // the namespace of the jobs; kube.JobNamespace
	SystemNamespace string        // the namespace of the lease and the failure rules; kube.SystemNamespace
	Identity        string        // the identity of this replica, for the lease; the address at which others reach it
	LeaderElection  bool          // whether the replicas elect a leader
	Workers         int           // Frameworks processed at a time; 64
	QPS             float32       // calls of the API per second; 400, in bursts of twice as many
	TTL             time.Duration // after which finished Frameworks are removed; 24 h
	Delivery        Delivery      // of the runtime; DeliverAuto
	Claims          bool          // tasks get their GPUs by claims, which agents of the machines serve
	LogBytes        int           // kept of each task's log; 1 MiB; below 0: no logs
	Store           archive.Store
	Replaced        *archive.Replaced // if the archive replaced a damaged one; otherwise nil
	Peers           *rendezvous.Board // where tasks wait for each other's addresses; nil: a new one
	PeersKey        func() []byte     // receives the key of the tokens that tasks send; empty until it is known
	Logs            LogReader         // of the machines; nil: only the kubelets have logs
	Log             logr.Logger
	Registry        prometheus.Registerer // nil: no metrics

	policy machine.Policy // tests have shorter times
}

func (o *Options) fill() error {
	switch {
	case o.Config == nil:
		return errors.New("the controller is given no connection to a cluster")
	case o.Store == nil:
		return errors.New("the controller is given no archive")
	case o.LeaderElection && o.Identity == "":
		return errors.New("the controller is given no identity to be elected by")
	}
	setDefault(&o.Namespace, kube.JobNamespace)
	setDefault(&o.SystemNamespace, kube.SystemNamespace)
	setDefault(&o.Workers, 64)
	setDefault(&o.QPS, 400)
	setDefault(&o.TTL, 24*time.Hour)
	setDefault(&o.LogBytes, 1<<20)
	if o.Peers == nil {
		o.Peers = rendezvous.New()
	}
	if o.PeersKey == nil {
		none := rand.Text() // it is secret
		o.PeersKey = func() []byte { return []byte(none) }
	}
	setDefault(&o.Delivery, DeliverAuto)
	setDefault(&o.policy, machine.DefaultPolicy())
	return nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// renewDeadline is how long the API server may be unavailable before the lease counts as lost.
const renewDeadline = 10 * time.Second
