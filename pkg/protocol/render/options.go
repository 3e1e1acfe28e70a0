// Package render makes the objects that a submission creates of a job: one Framework and its Secrets.
// In: a job of pkg/protocol, who submits it, and what is known about the cluster. Out: the objects, or
// findings that name what the cluster hasn't got. Nothing is asked or sent here.
package render

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/protocol"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Options say who submits a job, and to which cluster.
type Options struct {
	User      string
	Group     string // of the user, for quotas; may be empty
	Namespace string
	Cluster   Cluster
	Code      *spec.Code // a folder that goes along, or nil
	Now       time.Time
	// NewKey makes the private key by which the job's tasks log in to each other, PEM; nil makes one of
	// ed25519.
	NewKey func() (string, error)
}

// Cluster is what is known about the cluster. What is nil is not known, and is not checked.
type Cluster struct {
	// RuntimeImage is that of pai-runtime.
	RuntimeImage string
	// PullSecret is a Secret in the jobs' namespace for the cluster's own registry, or "".
	PullSecret string
	// SchedulerName is that of the scheduler of GPUs; "" leaves jobs to Kubernetes' own.
	SchedulerName string
	// NodeLabels are those of the nodes that jobs may run on.
	NodeLabels map[string]string
	// PeersURL is where the tasks of a job wait for each other's addresses; "" where the job controller doesn't tell them, but writes them
	// into a ConfigMap.
	PeersURL string
	// Domain is that of the cluster's DNS.
	Domain string
	// Claims: tasks get their GPUs by claims, which have no more room for a large gang than for a small one.
	Claims bool

	VirtualClusters map[string]VirtualCluster
	// SKUs are the resources of one cell, by the type of its GPU, or by that of CPU cells.
	SKUs map[string]SKU
	// ReserveGPUMachines: tasks that may take CPU cells take no share of GPUs instead.
	ReserveGPUMachines bool

	Storages map[string]Storage
	// NoRDMA: the nodes are known, and none of those that run jobs publishes ResourceRDMA.
	NoRDMA bool
}

// VirtualCluster is what a virtual cluster owns.
type VirtualCluster struct {
	Cells  map[string]int // GPUs and CPU cells, by type
	Pinned []string       // names of its pinned cells
	// PinnedTypes are the types of what lies in the pinned cells, where they are known.
	PinnedTypes map[string]string
	// Quota limits the GPUs of one user and of one group; 0 is no limit.
	PerUser, PerGroup int
	Users, Groups     map[string]int
}

// SKU is the share of a machine that goes with one GPU, or that a CPU cell is. What is 0 is not known, and
// not counted.
type SKU struct {
	GPU int // 0 of a CPU cell
	// MilliCPU is thousandths of a processor: a small machine may have fewer processors than GPUs.
	MilliCPU int
	MemoryMB int
	PerNode  int // cells of the largest machine
}

// Storage is a claim that jobs may mount.
type Storage struct {
	Claim    string // its name; "" is the storage's
	PerUser  bool   // a job sees only the folder of its user
	ReadOnly bool
	Default  bool // mounted where a job asks for its user's default storages
}

// Objects are what a submission creates: first the Framework, then the Secrets, which it owns.
type Objects struct {
	Framework *v1.Framework
	Secrets   []*corev1.Secret
	// After are the jobs that the file names; a submission finds out which they are.
	After []protocol.After
}
