// Package render makes the objects that a submission creates of a job: one Framework and its Secrets.
// In: a job of pkg/job/protocol, its user, and the known facts about the cluster. Out: the objects, or
// findings that name resources that the cluster doesn't have. It sends no requests.
package render

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Options identify the user who submits a job, and the cluster.
type Options struct {
	User      string
	Group     string // the group of the user, for quotas; may be empty
	Namespace string
	Cluster   Cluster
	Code      *spec.Code // a folder that is sent with the job, or nil
	Now       time.Time
	// NewKey makes the private key (PEM) that the job's tasks use to log in to each other. If NewKey is nil, the key is an ed25519 key.
	NewKey func() (string, error)
}

// Cluster holds the known facts about the cluster. A nil field is unknown, and is not checked.
type Cluster struct {
	// RuntimeImage is the image of pai-runtime.
	RuntimeImage string
	// PullSecret is a Secret in the jobs' namespace for the cluster's own registry, or "".
	PullSecret string
	// SchedulerName is the name of the scheduler of GPUs; "" means that Kubernetes' own scheduler places jobs.
	SchedulerName string
	// NodeLabels are the labels of the nodes that may run jobs.
	NodeLabels map[string]string
	// PeersURL is where the tasks of a job wait for each other's addresses; "" if the job controller writes them
	// into a ConfigMap instead of sending them.
	PeersURL string
	// Domain is the domain of the cluster's DNS.
	Domain string
	// Claims reports whether tasks get their GPUs by claims, whose size doesn't grow with the gang.
	Claims bool

	VirtualClusters map[string]VirtualCluster
	// SKUs are the resources of one cell, by the type of its GPU or of its CPU cell.
	SKUs map[string]SKU
	// ReserveGPUMachines: tasks that may take CPU cells don't take a share of GPUs instead.
	ReserveGPUMachines bool

	Storages map[string]Storage
	// NoRDMA reports that the nodes are known, and that none of the nodes for jobs publishes ResourceRDMA.
	NoRDMA bool
	// GPUs is how many GPUs the largest of the nodes that run jobs publishes, or nil if the nodes are not known. Without a scheduler of GPUs
	// tasks request them of Kubernetes.
	GPUs *int
}

// VirtualCluster lists the resources that a virtual cluster owns.
type VirtualCluster struct {
	Cells  map[string]int // GPUs and CPU cells, by type
	Pinned []string       // names of its pinned cells
	// PinnedTypes are the types of the pinned cells, if they are known.
	PinnedTypes map[string]string
	// Quota limits the GPUs of one user and of one group; 0 means no limit.
	PerUser, PerGroup int
	Users, Groups     map[string]int
}

// SKU is the share of a machine that belongs to one GPU, or the size of a CPU cell. A size of 0 is unknown, and not
// counted.
type SKU struct {
	GPU int // 0 for a CPU cell
	// MilliCPU is thousandths of a processor: a small machine may have fewer processors than GPUs.
	MilliCPU int
	MemoryMB int
	PerNode  int // cells of the largest machine
	// NoRDMA reports that its machines are known, and that none of them publishes ResourceRDMA.
	NoRDMA bool
}

// Storage is a claim that jobs may mount.
type Storage struct {
	Claim    string // its name; "" is the storage's
	PerUser  bool   // a job sees only the folder of its user
	ReadOnly bool
	Default  bool // mounted if a job requests its user's default storages
}

// Objects are the objects that a submission creates: first the Framework, then the Secrets, which it owns.
type Objects struct {
	Framework *v1.Framework
	Secrets   []*corev1.Secret
	// After are the jobs that the file names; a submission looks them up.
	After []protocol.After
}
