// Package status is one model of a whole cluster, kept up to date by watches: machines and their GPUs, virtual clusters, services,
// jobs, events and alerts. "paictl status" draws it as screens, tables and JSON.
// In: a connection to a cluster. Out: a Cluster after each change, with the age of each of its parts.
package status

import (
	"time"

	"github.com/openpai/paictl/pkg/job"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/services/state"
)

// Cluster is the known state of a cluster at one moment. A published Cluster never changes. Each change creates a new
// Cluster, which shares the unchanged parts. The comments on the slices describe their order.
type Cluster struct {
	// Name is the name of the configuration, or the kubeconfig's context if no configuration was pushed.
	Name       string `json:"name"`
	Server     string `json:"server"` // https://10.0.0.1:6443
	Kubernetes string `json:"kubernetes,omitempty"`
	// At is when this model was created.
	At      time.Time `json:"at"`
	Verdict Verdict   `json:"verdict"`
	// Sources lists all sources, in the order of SourceNames.
	Sources         []Source         `json:"sources"`
	Machines        []Machine        `json:"machines"`         // by name
	VirtualClusters []VirtualCluster `json:"virtualClusters"`  // by name
	Services        []Service        `json:"services"`         // by name
	Jobs            []*Job           `json:"jobs"`             // newest submission first; shared between models, never changed
	Events          []Event          `json:"events,omitempty"` // newest first, at most MaxEvents
	Alerts          []Alert          `json:"alerts"`           // the worst first, then the newest
	Counts          Counts           `json:"counts"`
}

// MaxEvents is the maximum number of events of a Cluster.
const MaxEvents = 500

// Levels of a verdict, of a problem and of an alert, from best to worst.
const (
	LevelOK       = "ok"
	LevelUnknown  = "unknown" // a part that is needed to judge can't be read
	LevelWarning  = "warning" // it works, and someone should look
	LevelCritical = "critical"
)

// Verdict reports whether a cluster is healthy. Problems explain why it isn't.
type Verdict struct {
	Level string `json:"level"`
	// Problems are sorted by severity. If many machines have the same kind of problem, it is listed once.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one thing that is wrong with a cluster.
type Problem struct {
	Level string `json:"level"`
	// Kind and Name identify the object: machine gpu-3, gpu gpu-3/5, service grafana, vc default, alert …, source
	// prometheus.
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message"` // one line
	// Hint is the remedy: a sentence or a paictl command.
	Hint string `json:"hint,omitempty"`
	// Others is the number of other objects with the same problem.
	Others int `json:"others,omitempty"`
}

// Names of sources.
const (
	SourceAPI        = "api"        // Kubernetes: nodes, pods, claims, slices, events
	SourceJobs       = "jobs"       // Frameworks, and the queue
	SourceScheduler  = "scheduler"  // virtual clusters, queue, cells
	SourceServices   = "services"   // the releases
	SourcePrometheus = "prometheus" // use of GPUs, certificates
	SourceAlerts     = "alerts"     // Alertmanager
)

// States of a source.
const (
	StateLoading = "loading" // the first response hasn't arrived
	StateCurrent = "current"
	StateStale   = "stale"  // it no longer responds: the data shown is from Since
	StateAbsent  = "absent" // the cluster doesn't have it, such as before the first "service start"
	StateFailed  = "failed" // it never responded, or denies access
)

// Source is a source of data for a part of the model.
type Source struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Since is the time of the last response if the source is stale. Otherwise it is the time of the last change of
	// State.
	Since time.Time `json:"since,omitzero"`
	// Message explains why the source isn't current. Hint is the remedy.
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Refused means that the source responds but denies this user access.
	Refused bool `json:"refused,omitempty"`
	// Updated is the time of the source's last change.
	Updated time.Time `json:"updated,omitzero"`
}

// SourceNames returns the names of all sources, in the order of Cluster.Sources.
func SourceNames() []string {
	return []string{SourceAPI, SourceJobs, SourceScheduler, SourceServices, SourcePrometheus, SourceAlerts}
}

// States of a machine. pkg/cluster uses the same words.
const (
	MachineReady    = "Ready"
	MachineNotReady = "NotReady"
	MachineUnknown  = "Unknown"  // its kubelet is silent
	MachineOutside  = "Outside"  // configured, and no node
	MachineUnlisted = "Unlisted" // a node that isn't configured
)

// Machine is a node of the cluster, or a configured machine that isn't a node.
type Machine struct {
	Name    string   `json:"name"`
	Address string   `json:"address,omitempty"`
	Roles   []string `json:"roles,omitempty"`
	SKU     string   `json:"sku,omitempty"`
	// State is Ready, NotReady, Unknown (the kubelet doesn't respond), Outside (configured, but not a node) or Unlisted
	// (a node that isn't configured).
	State    string    `json:"state"`
	Since    time.Time `json:"since,omitzero"`
	Cordoned bool      `json:"cordoned,omitempty"`
	// CordonedBy is the person, operator or policy that cordoned the machine. CordonReason is their reason. Both are
	// empty if a different tool cordoned the machine.
	CordonedBy   string `json:"cordonedBy,omitempty"`
	CordonReason string `json:"cordonReason,omitempty"`
	// Pressure lists the conditions of the node that are true but should be false.
	Pressure []string `json:"pressure,omitempty"`
	Message  string   `json:"message,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	Kubelet  string   `json:"kubelet,omitempty"` // versions
	Runtime  string   `json:"runtime,omitempty"`
	Kernel   string   `json:"kernel,omitempty"`
	OS       string   `json:"os,omitempty"`
	Driver   string   `json:"driver,omitempty"` // that of its GPUs
	// Certificates is when the first certificate of the machine expires, or zero if that is unknown.
	Certificates time.Time `json:"certificatesExpire,omitzero"`
	CPU          Amount    `json:"cpu"`            // thousandths of a processor; Used is the sum of the pods' requests
	Memory       Amount    `json:"memory"`         // MiB
	Pods         int       `json:"pods"`           // running pods
	GPUs         []GPU     `json:"gpus,omitempty"` // by index
}

// Amount is the total of a resource and its used part.
type Amount struct {
	Total int64 `json:"total"`
	Used  int64 `json:"used"`
}

// States of a GPU's health.
const (
	GPUHealthy = "healthy"
	GPUIgnored = "ignored" // sick, and used anyway by someone's order
	GPUSick    = "sick"
	GPUMissing = "missing" // configured, but missing
	GPUUnknown = "unknown" // no agent reports it, or the machine is silent
)

// GPU is a GPU of a machine, or a slice of a GPU that several jobs share.
type GPU struct {
	Index  int32  `json:"index"`
	Model  string `json:"model,omitempty"`
	UUID   string `json:"uuid,omitempty"`
	Memory int64  `json:"memory,omitempty"` // MiB
	Health string `json:"health"`
	Reason string `json:"reason,omitempty"` // why it isn't healthy
	// ForPods means that the GPU is reserved for ordinary pods. Jobs can't use it.
	ForPods   bool   `json:"forPods,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`
	Owner     *Owner `json:"owner,omitempty"` // nil if it is free
	Use       *Use   `json:"use,omitempty"`   // nil if Prometheus has no data
}

// Owner is the pod that holds a GPU, and the job of that pod.
type Owner struct {
	Job            string `json:"job,omitempty"` // user/name; "" for a pod that isn't a job's
	JobUID         string `json:"jobUid,omitempty"`
	User           string `json:"user,omitempty"`
	VirtualCluster string `json:"virtualCluster,omitempty"`
	Opportunistic  bool   `json:"opportunistic,omitempty"` // it has no guarantee
	Pod            string `json:"pod"`                     // namespace/name
	Task           string `json:"task,omitempty"`          // worker[3]
}

// Use is the measured utilization of a GPU.
type Use struct {
	At          time.Time `json:"at"`
	Utilisation float64   `json:"utilisation"`           // percent
	MemoryUsed  int64     `json:"memoryUsed"`            // MiB
	Temperature float64   `json:"temperature,omitempty"` // degrees Celsius
	Power       float64   `json:"power,omitempty"`       // watts
}

// VirtualCluster is a team's share of the cluster, its usage and its queue.
type VirtualCluster struct {
	schedulerapi.VirtualCluster
	// Queue lists the waiting gangs. The first gang starts next.
	Queue []job.WaitingGang `json:"queue,omitempty"`
	// Deleted means that the virtual cluster is no longer in the configuration.
	Deleted bool `json:"deleted,omitempty"`
}

// Service is a service of the platform.
type Service struct {
	state.Status
}

// Job is a job with the reason for its state.
type Job struct {
	job.Row
	// Why explains in one sentence why a waiting job waits, or why a failed job failed.
	Why string `json:"why,omitempty"`
	// Nodes lists the machines that run the job's tasks.
	Nodes []string `json:"nodes,omitempty"`
}

// Title returns the job's name as user/name, or only the name if the user is unknown.
func (j *Job) Title() string {
	if j.User == "" {
		return j.Name
	}
	return j.User + "/" + j.Name
}

// Event is an event of Kubernetes.
type Event struct {
	At     time.Time `json:"at"`
	Count  int       `json:"count"`
	Type   string    `json:"type"` // Normal or Warning
	Reason string    `json:"reason"`
	// Object is "pod/NAME"; Namespace is "" for a node.
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	Message   string `json:"message"`
	// Job is user/name of the job whose pod has the event.
	Job string `json:"job,omitempty"`
}

// Alert is a firing alert.
type Alert struct {
	Name     string            `json:"name"`
	Severity string            `json:"severity"` // from its rule: critical, warning, info
	Since    time.Time         `json:"since"`
	Summary  string            `json:"summary"`
	Labels   map[string]string `json:"labels,omitempty"`
	Silenced bool              `json:"silenced,omitempty"`
	Runbook  string            `json:"runbook,omitempty"`
}

// Counts holds totals over the model.
type Counts struct {
	Machines, MachinesReady  int
	GPUs, GPUsUsed, GPUsSick int
	Services, ServicesReady  int
	Running, Waiting, Failed int // jobs; Failed counts the last day
	Alerts                   int // not silenced
}
