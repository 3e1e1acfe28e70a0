// Package render makes the objects that the submission of a job creates: one Framework and its Secrets.
// In: a job of pkg/job/protocol, its user, and the known facts about the cluster. Out: the objects, or findings about resources that the cluster
// doesn't have. It sends no requests.
package render

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Options describe the submitting user and the cluster.
type Options struct {
	User      string
	Group     string // the group of the user, for quotas; may be empty
	Namespace string
	Cluster   Cluster
	Code      *spec.Code // a folder that is sent with the job, or nil
	Now       time.Time
	// NewKey makes the private key, in PEM, that the job's tasks use to log in to each other. If NewKey is nil, an ed25519 key is made.
	NewKey func() (string, error)
}

// Cluster contains the known facts about the cluster. A nil field means that the fact is unknown, so that requests aren't checked against it.
type Cluster struct {
	// RuntimeImage is the image of pai-runtime.
	RuntimeImage string
	// PullSecret is the name of the Secret for the cluster's own registry, in the namespace of jobs. It is "" if there is no such Secret.
	PullSecret string
	// SchedulerName is the name of the GPU scheduler. If it is "", Kubernetes' own scheduler places jobs.
	SchedulerName string
	// NodeLabels are the labels of the nodes that may run jobs.
	NodeLabels map[string]string
	// PeersURL is the URL that the tasks of a job request to get each other's addresses. If it is "", the job controller writes the addresses
	// into a ConfigMap.
	PeersURL string
	// Domain is the DNS domain of the cluster.
	Domain string
	// Claims reports whether tasks get their GPUs by resource claims. The size of a claim doesn't grow with the gang.
	Claims bool

	VirtualClusters map[string]VirtualCluster
	// SKUs are the resources of one cell for each type of GPU or CPU cell.
	SKUs map[string]SKU
	// ReserveGPUMachines means that tasks which can take CPU cells must not take a share of GPUs instead.
	ReserveGPUMachines bool

	Storages map[string]Storage
	// NoRDMA means that the nodes are known, and that no node for jobs publishes ResourceRDMA.
	NoRDMA bool
	// GPUs is the largest number of GPUs that a node for jobs publishes, or nil if the nodes are unknown. In a cluster without a GPU scheduler,
	// tasks request these GPUs from Kubernetes.
	GPUs *int
}

// VirtualCluster lists the resources that a virtual cluster owns.
type VirtualCluster struct {
	Cells  map[string]int // GPUs and CPU cells, by type
	Pinned []string       // names of its pinned cells
	// PinnedTypes are the types of the pinned cells, if they are known.
	PinnedTypes map[string]string
	// PerUser and PerGroup are the maximum numbers of GPUs for one user and one group. Users and Groups contain exceptions by name. Zero means no
	// limit.
	PerUser, PerGroup int
	Users, Groups     map[string]int
}

// SKU is the size of a CPU cell, or the share of a machine that belongs to one GPU. A size of 0 is unknown and ignored.
type SKU struct {
	GPU int // 0 for a CPU cell
	// MilliCPU is the number of processors in thousandths, because a small machine may have fewer processors than GPUs.
	MilliCPU int
	MemoryMB int
	PerNode  int // cells of the largest machine
	// NoRDMA means that the machines with this SKU are known, and that none of them publishes ResourceRDMA.
	NoRDMA bool
}

// Storage is a PersistentVolumeClaim that jobs may mount.
type Storage struct {
	Claim    string // its name; "" is the storage's
	PerUser  bool   // a job sees only the folder of its user
	ReadOnly bool
	Default  bool // mounted if a job requests its user's default storages
}

// Objects contains the objects to create: first the Framework, and then the Secrets, whose owner is the Framework.
type Objects struct {
	Framework *v1.Framework
	Secrets   []*corev1.Secret
	// After lists the jobs that this job waits for, with the names in the job file. The caller must look them up.
	After []protocol.After
}
