// Package api contains the types of the scheduler's HTTP API that HiveD's API doesn't have. In: nothing. Out: plain structs with JSON tags, for the
// server in pkg/scheduler/gangs and for its clients.
package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Paths of the API. All requests are read-only. Requests to PathValidate and PathOutlook are dry runs that use POST.
const (
	PathWhy             = "/v1/why/"            // {group}[?vc=], or {vc}/{group}: Why
	PathQueue           = "/v1/queue"           // Queue; [?vc=&prefix=&limit=], as in QueueQuery
	PathOutlook         = "/v1/outlook"         // OutlookQuery → Outlook
	PathVirtualClusters = "/v1/virtualclusters" // VirtualClusters
	PathValidate        = "/v1/virtualclusters/validate"
	PathNodes           = "/v1/nodes" // Nodes
)

// Keys on pods and nodes that only paictl's scheduler uses.
const (
	// UserLabel is the label with the user whose quota the pod uses. OpenPAI sets this label.
	UserLabel = "userName"
	// UserGroupLabel is the label with the name of the user's group.
	UserGroupLabel = "paictl.openpai.org/user-group"
	// DevicesAnnotation is the annotation of a node that lists its GPUs. Its value is a NodeDevices.
	DevicesAnnotation = "paictl.openpai.org/gpus"
)

// Reasons of the events on pods, nodes and the configuration.
const (
	ReasonWaiting       = "WaitingCells"
	ReasonPreempting    = "Preempting"
	ReasonPreempted     = "Preempted"
	ReasonBound         = "Bound"
	ReasonDowngraded    = "Downgraded"
	ReasonRestored      = "Restored"
	ReasonRefused       = "Refused"
	ReasonNotManaged    = "NotManaged"
	ReasonClaimLost     = "ClaimLost"
	ReasonDifferentGPUs = "DifferentGPUs"
	ReasonConfigApplied = "ConfigurationApplied"
	ReasonConfigRefused = "ConfigurationRefused"
)

// NodeDevices lists the devices that an agent found on its node.
type NodeDevices struct {
	Devices []Device `json:"devices"`
	// Parts is the number of devices per GPU. Device i is a part or an instance of GPU i/Parts. 0 and 1 mean that GPUs aren't
	// split.
	Parts int `json:"parts,omitempty"`
	// MIG is the profile of the instances on the node's GPUs, or "" if the GPUs aren't split by MIG.
	MIG string `json:"mig,omitempty"`
}

// mostParts is the maximum of Parts. No GPU can be split into more parts.
const mostParts = 1024

// Split returns Parts as a divisor. It returns 1 if GPUs aren't split, or if Parts is invalid.
func (n *NodeDevices) Split() int32 {
	if n.Parts < 1 || n.Parts > mostParts {
		return 1
	}
	return int32(n.Parts)
}

// ReadDevices reads the agent's report from a node's annotations. It returns nil if the agent hasn't reported.
func ReadDevices(annotations map[string]string) (*NodeDevices, error) {
	text := annotations[DevicesAnnotation]
	if text == "" {
		return nil, nil
	}
	out := &NodeDevices{}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return nil, fmt.Errorf("the annotation %s: %w", DevicesAnnotation, err)
	}
	return out, nil
}

// States of a GPU. A sick GPU gets no jobs. An ignored GPU has a problem, but a user has decided to use it.
const (
	GPUHealthy = "healthy"
	GPUSick    = "sick"
	GPUIgnored = "ignored"
)

// GPU is a GPU of a node, whole or split.
type GPU struct {
	Node  string `json:"node"`
	GPU   int32  `json:"gpu"`
	Model string `json:"model,omitempty"`
	State string `json:"state" enum:"healthy,sick,ignored"`
	// Reason describes the problem of the GPU.
	Reason string `json:"reason,omitempty"`
	// MIG is the profile of the instances into which the GPU is to be split. Instances lists the UUIDs of the existing
	// instances, in the order of the devices.
	MIG       string   `json:"mig,omitempty"`
	Instances []string `json:"instances,omitempty"`
}

// GPUs returns the GPUs of a node, by number. It merges devices that are parts of the same GPU.
func (n *NodeDevices) GPUs(node string) []GPU {
	if n == nil {
		return nil
	}
	var out []GPU
	parts := n.Split()
	instances := map[int32][]string{}
	for _, d := range n.Devices {
		if d.Instance != "" {
			instances[d.Index/parts] = append(instances[d.Index/parts], d.Instance)
		}
	}
	for _, d := range n.Devices {
		if d.Index%parts != 0 {
			continue // another part of the same GPU
		}
		g := GPU{Node: node, GPU: d.Index / parts, Model: d.Model, State: GPUHealthy, MIG: n.MIG, Instances: instances[d.Index/parts]}
		switch {
		case !d.Healthy:
			g.State, g.Reason = GPUSick, d.Reason
		case d.Ignored != "":
			g.State, g.Reason = GPUIgnored, d.Ignored
		}
		out = append(out, g)
	}
	return out
}

// Device is a GPU of a node, or a part of a split GPU.
type Device struct {
	Index   int32  `json:"index"`
	Healthy bool   `json:"healthy"`
	Model   string `json:"model,omitempty"`
	// Reason explains why the device isn't healthy.
	Reason string `json:"reason,omitempty"`
	// Ignored describes the device's problem. The device counts as healthy, because a user has decided to ignore this problem.
	Ignored string `json:"ignored,omitempty"`
	// ForPods reports whether the agent gives the device to ordinary pods instead of jobs.
	ForPods bool `json:"forPods,omitempty"`
	// Instance is the UUID of the MIG instance. It is empty for a whole GPU, and for an instance that doesn't exist yet.
	Instance string `json:"instance,omitempty"`
}

// States of a gang and of its pods.
const (
	// Waiting: the gang has no place yet. Preempting: cells are reserved, and the gangs on these cells are being evicted.
	// Binding: the gang has a place, but the place isn't stored in Kubernetes yet. Bound: the place is stored in Kubernetes.
	// Ignored: another scheduler bound the pod, or the pod contradicts the scheduler's state.
	Waiting    = "Waiting"
	Preempting = "Preempting"
	Binding    = "Binding"
	Bound      = "Bound"
	Ignored    = "Ignored"
)

// Why describes the state of a gang, and explains why the gang doesn't start.
type Why struct {
	VC    string `json:"vc"`
	Group string `json:"group"`
	// State is Waiting, Preempting, Binding or Bound. It is the state of the pod with the least progress.
	State string `json:"state"`
	// Sentence is a message for users.
	Sentence string    `json:"sentence"`
	Priority int       `json:"priority"`
	Since    time.Time `json:"since"` // when the gang's first pod was created
	Asks     Request   `json:"asks"`
	// Position is the gang's position among QueueLength waiting gangs. PositionInVC is its position in the virtual cluster.
	// Both count from 1, and are 0 if the gang doesn't wait.
	Position     int `json:"position,omitempty"`
	PositionInVC int `json:"positionInVC,omitempty"`
	QueueLength  int `json:"queueLength"`
	// Explanation explains why a gang waits. Running describes a gang with a place.
	Explanation *cell.Explanation `json:"explanation,omitempty"`
	// Alternative explains why the gang doesn't start on GPUs either. The gang may use GPUs if no CPU cells are free.
	Alternative *cell.Explanation `json:"alternative,omitempty"`
	Running     *cell.GangStatus  `json:"running,omitempty"`
	Pods        []Pod             `json:"pods"`
}

// Pod is a pod of a gang.
type Pod struct {
	Name    string  `json:"name"` // namespace/name
	UID     string  `json:"uid"`
	State   string  `json:"state"`
	Node    string  `json:"node,omitempty"`
	Indices []int32 `json:"indices,omitempty"`
	// Reason is the scheduler's latest reason for the pod's state.
	Reason string `json:"reason,omitempty"`
}

// QueueQuery selects waiting gangs. Empty fields select all gangs.
type QueueQuery struct {
	VC string
	// Prefixes are name prefixes. A gang's name must begin with one of them.
	Prefixes []string
	Limit    int
}

// Selects reports whether the query selects a gang. It ignores the limit.
func (q *QueueQuery) Selects(vc, group string) bool {
	return (q.VC == "" || q.VC == vc) &&
		(len(q.Prefixes) == 0 || slices.ContainsFunc(q.Prefixes, func(p string) bool { return strings.HasPrefix(group, p) }))
}

// Queue lists the waiting gangs. The gang that starts next comes first.
type Queue struct {
	Items []Queued `json:"items"`
	// Total is the number of selected gangs, including the gangs beyond the limit.
	Total int `json:"total"`
}

// Queued is a waiting gang.
type Queued struct {
	Position     int       `json:"position"`
	PositionInVC int       `json:"positionInVC"`
	VC           string    `json:"vc"`
	Group        string    `json:"group"`
	State        string    `json:"state"` // Waiting or Preempting
	Priority     int       `json:"priority"`
	Since        time.Time `json:"since"`
	Pods         int       `json:"pods"` // the pods that exist and have no place
	User         string    `json:"user,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	// HoldsFree reports whether the scheduler holds free cells of the virtual cluster for the gang. It does so if the gang has
	// waited long.
	HoldsFree bool `json:"holdsFree,omitempty"`
	Request
}

// Request describes the resources that a whole gang requests.
type Request struct {
	// GPUs is the number of GPUs that the gang's containers see.
	GPUs int `json:"gpus"`
	// ShareOfGPUs is the number of GPUs that pods occupy without seeing them. It is proportional to the pods' processors and
	// memory. ShareReason explains why the pods aren't on CPU cells.
	ShareOfGPUs int    `json:"shareOfGPUs,omitempty"`
	ShareReason string `json:"shareReason,omitempty"`
	CPUCells    int    `json:"cpuCells,omitempty"`
	// OrShareOfGPUs is the number of GPUs that the gang takes if no CPU cells are free on its permitted nodes. 0 means that the
	// gang waits for CPU cells.
	OrShareOfGPUs int `json:"orShareOfGPUs,omitempty"`
	// MilliCPU and MemoryMB are the limits of the existing pods, in thousandths of a processor and MiB.
	MilliCPU int64 `json:"milliCPU,omitempty"`
	MemoryMB int64 `json:"memoryMB,omitempty"`
}

// VirtualClusters lists all virtual clusters, sorted by name.
type VirtualClusters struct {
	// Generation is the number of configurations that this scheduler has applied as the leader.
	Generation int64            `json:"generation"`
	Items      []VirtualCluster `json:"items"`
	// Deleted lists virtual clusters that gangs use but the configuration no longer contains. Their running gangs continue
	// without a guarantee, and their waiting gangs never start.
	Deleted []VirtualCluster `json:"deleted,omitempty"`
	// Problem explains why the latest configuration was rejected, or is "".
	Problem string `json:"problem,omitempty"`
}

// VirtualCluster describes the resources of a team, and their use. Numbers count GPUs, except in CPU.
type VirtualCluster struct {
	Name        string   `json:"name"`
	Cells       []Cells  `json:"virtualCells,omitempty"`
	PinnedCells []string `json:"pinnedCells,omitempty"`
	Quota       *Quota   `json:"quota,omitempty"`
	// Policy is one of the names in cell.Policies.
	Policy     string `json:"policy"`
	Guaranteed int    `json:"guaranteed"`
	// Used counts the GPUs of guaranteed gangs. Opportunistic counts the GPUs of other gangs in this virtual cluster.
	Used          int `json:"used"`
	Opportunistic int `json:"opportunistic"`
	Free          int `json:"free"`
	Bad           int `json:"bad"`
	// CPU counts CPU cells. It is nil if the virtual cluster neither owns nor uses CPU cells. Leaves counts the leaves of GPUs
	// and CPU cells by type.
	CPU           *cell.CPUStats    `json:"cpuCells,omitempty"`
	Leaves        []cell.LeafStats  `json:"leaves,omitempty"`
	FreeByLevel   []cell.LevelCount `json:"freeByLevel,omitempty"`
	Fragmentation float64           `json:"fragmentation"`
	WaitingGangs  int               `json:"waitingGangs"`
	WaitingPods   int               `json:"waitingPods"`
}

// Cells is a number of cells of one type.
type Cells struct {
	CellType   string `json:"cellType"`
	CellNumber int    `json:"cellNumber"`
}

// Quota limits the GPUs of each user or group in a virtual cluster. 0 means unlimited.
type Quota struct {
	PerUser  int            `json:"perUser,omitempty"`
	PerGroup int            `json:"perGroup,omitempty"`
	Users    map[string]int `json:"users,omitempty"`
	Groups   map[string]int `json:"groups,omitempty"`
}

// Validation describes the effect of a configuration. The request's body is YAML in HiveD's format. If the body contains only
// virtualClusters, the hardware doesn't change.
type Validation struct {
	// Valid reports whether the configuration is valid. Problems are errors and warnings.
	Valid    bool      `json:"valid"`
	Problems []Problem `json:"problems,omitempty"`
	// Changes lists the affected gangs, such as gangs that lose or regain their guarantee.
	Changes []Change `json:"changes,omitempty"`
	// VirtualClusters lists the virtual clusters whose cells change.
	VirtualClusters []ChangedVirtualCluster `json:"virtualClusters,omitempty"`
}

// Problem is a mistake in a configuration. Line and Column count from 1. 0 means that the position is unknown.
type Problem struct {
	Severity string `json:"severity"` // error or warning
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`
}

// Effects of a change on a gang.
const (
	// Downgraded: the gang continues to run without its guarantee, so other gangs may preempt it. Restored: the gang has its
	// guarantee again. Refused: the gang waits, but its request becomes invalid. Orphaned: the gang continues to run as an
	// opportunistic gang, but its virtual cluster is deleted. The scheduler would reject its new pods.
	Orphaned   = "orphaned"
	Downgraded = "downgraded"
	Restored   = "restored"
	Refused    = "refused"
)

// Change is the effect of a new configuration on a gang.
type Change struct {
	VC     string   `json:"vc"`
	Group  string   `json:"group"`
	Effect string   `json:"effect"`
	Pods   []string `json:"pods,omitempty"` // namespace/name
	GPUs   int      `json:"gpus"`
	// CPUCells is the number of CPU cells that the gang holds or requests instead of GPUs.
	CPUCells int    `json:"cpuCells,omitempty"`
	User     string `json:"user,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Held returns the number of GPUs or CPU cells that the gang holds or requests, as text.
func (c *Change) Held() string {
	if c.CPUCells > 0 {
		return plural.Of(c.CPUCells, "CPU cell")
	}
	return plural.Of(c.GPUs, "GPU")
}

// ChangedVirtualCluster is a virtual cluster before and after a change. Before is nil if the change adds the virtual cluster.
// After is nil if the change deletes it.
type ChangedVirtualCluster struct {
	Name   string          `json:"name"`
	Before *VirtualCluster `json:"before,omitempty"`
	After  *VirtualCluster `json:"after,omitempty"`
}

// Nodes lists the nodes of the configuration with their reported devices.
type Nodes struct {
	Items []Node `json:"items"`
}

// Node is a node of the configuration. Its lists contain device indices in ascending order.
type Node struct {
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
	// Reason explains why the node isn't healthy.
	Reason     string  `json:"reason,omitempty"`
	Configured []int32 `json:"configured"`
	// Used lists the devices that gangs hold.
	Used []int32 `json:"used,omitempty"`
	// Reported means that the node reports its devices. Without a report, all configured devices count as present.
	Reported bool `json:"reported"`
	// Missing devices are configured but not present. Unhealthy devices are present but not usable. Unexpected devices are
	// present but not configured.
	Missing    []int32 `json:"missing,omitempty"`
	Unhealthy  []int32 `json:"unhealthy,omitempty"`
	Unexpected []int32 `json:"unexpected,omitempty"`
	// Why explains in one sentence per device why the device isn't healthy.
	Why []string `json:"why,omitempty"`
	// Problem explains why the node's report is invalid.
	Problem string `json:"problem,omitempty"`

	disagree bool // the agent and the configuration disagree about a GPU, which may be healthy
}

// CPUCells returns the number of the virtual cluster's own CPU cells.
func (v *VirtualCluster) CPUCells() int {
	if v.CPU == nil {
		return 0
	}
	return v.CPU.Guaranteed
}
