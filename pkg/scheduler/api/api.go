// Package api has the types of the scheduler's HTTP API that HiveD doesn't have. In: nothing. Out: plain structs with
// JSON tags, for the server in pkg/scheduler/gangs and for its clients.
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

// Paths of the API. All paths are read-only. PathValidate and PathOutlook are dry runs and are sent with POST.
const (
	PathWhy             = "/v1/why/"            // {group}[?vc=], or {vc}/{group}: Why
	PathQueue           = "/v1/queue"           // Queue; [?vc=&prefix=&limit=], as in QueueQuery
	PathOutlook         = "/v1/outlook"         // OutlookQuery → Outlook
	PathVirtualClusters = "/v1/virtualclusters" // VirtualClusters
	PathValidate        = "/v1/virtualclusters/validate"
	PathNodes           = "/v1/nodes" // Nodes
)

// Keys on pods and nodes that only our scheduler uses.
const (
	// UserLabel names the user to whose quota a pod counts; OpenPAI sets it.
	UserLabel = "userName"
	// UserGroupLabel names the user's group.
	UserGroupLabel = "paictl.openpai.org/user-group"
	// DevicesAnnotation of a node lists the GPUs that it really has; its value is a NodeDevices.
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

// NodeDevices are the devices that an agent found on its node.
type NodeDevices struct {
	Devices []Device `json:"devices"`
	// Parts is the number of devices of each GPU if it is split: device i is a part or an instance of GPU i/Parts. 0 and 1 both mean one.
	Parts int `json:"parts,omitempty"`
	// MIG is the profile of the instances into which the hardware is to split the GPUs, or "" if the hardware doesn't split them.
	MIG string `json:"mig,omitempty"`
}

// mostParts is above the number of parts of any GPU.
const mostParts = 1024

// Split returns Parts as a divisor. It returns 1 if GPUs aren't split, or if Parts is a number that no agent writes.
func (n *NodeDevices) Split() int32 {
	if n.Parts < 1 || n.Parts > mostParts {
		return 1
	}
	return int32(n.Parts)
}

// ReadDevices reads the report of a node's agent from the node's annotations; nil if no agent has reported.
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

// The states of a GPU. A sick one gets no jobs; an ignored one has a problem, but a user ordered to use it.
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
	// Reason describes the problem.
	Reason string `json:"reason,omitempty"`
	// MIG is the profile of the instances into which it is to be split. Instances are the UUIDs of its present instances, in the order of the
	// devices.
	MIG       string   `json:"mig,omitempty"`
	Instances []string `json:"instances,omitempty"`
}

// GPUs returns the GPUs of a node, by number. Devices that are parts of the same GPU are one.
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

// Device is one GPU of a node.
type Device struct {
	Index   int32  `json:"index"`
	Healthy bool   `json:"healthy"`
	Model   string `json:"model,omitempty"`
	// Reason explains why it isn't healthy.
	Reason string `json:"reason,omitempty"`
	// Ignored is its problem; it counts as healthy because a user ordered to ignore that.
	Ignored string `json:"ignored,omitempty"`
	// ForPods reports whether the agent gives it to ordinary pods, and not to jobs.
	ForPods bool `json:"forPods,omitempty"`
	// Instance is the UUID of the MIG instance, "" for a whole GPU and for an instance that isn't made yet.
	Instance string `json:"instance,omitempty"`
}

// States of a gang, and of its pods.
const (
	// Waiting: no place yet. Preempting: cells are reserved, and the gangs that use them are being evicted. Binding: it
	// has its place, which isn't written to Kubernetes yet. Bound: Kubernetes knows. Ignored: bound by another
	// scheduler, or in contradiction to the scheduler's state.
	Waiting    = "Waiting"
	Preempting = "Preempting"
	Binding    = "Binding"
	Bound      = "Bound"
	Ignored    = "Ignored"
)

// Why describes the state of a gang, and why it doesn't proceed.
type Why struct {
	VC    string `json:"vc"`
	Group string `json:"group"`
	// State is Waiting, Preempting, Binding or Bound: the state of the pod that is furthest behind.
	State string `json:"state"`
	// Sentence is a message for people.
	Sentence string    `json:"sentence"`
	Priority int       `json:"priority"`
	Since    time.Time `json:"since"` // the creation of its first pod
	Asks     Asks      `json:"asks"`
	// Position counts from 1 among QueueLength waiting gangs, PositionInVC in the virtual cluster;
	// 0 if it doesn't wait.
	Position     int `json:"position,omitempty"`
	PositionInVC int `json:"positionInVC,omitempty"`
	QueueLength  int `json:"queueLength"`
	// Explanation explains a waiting gang, and Running describes a gang that has its place.
	Explanation *cell.Explanation `json:"explanation,omitempty"`
	// Alternative explains the GPUs that the gang takes if no CPU cells are free.
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
	// Reason is the latest reason that the pod received.
	Reason string `json:"reason,omitempty"`
}

// QueueQuery selects gangs that wait. Empty fields select all.
type QueueQuery struct {
	VC string
	// Prefixes are beginnings of the gangs' names. A gang must match one prefix.
	Prefixes []string
	Limit    int
}

// Selects reports whether the query selects a gang of a virtual cluster, the limit aside.
func (q *QueueQuery) Selects(vc, group string) bool {
	return (q.VC == "" || q.VC == vc) &&
		(len(q.Prefixes) == 0 || slices.ContainsFunc(q.Prefixes, func(p string) bool { return strings.HasPrefix(group, p) }))
}

// Queue holds the gangs that wait, the next one first.
type Queue struct {
	Items []Queued `json:"items"`
	// Total is the number of selected gangs, including those beyond the limit.
	Total int `json:"total"`
}

// Queued is a gang that waits.
type Queued struct {
	Position     int       `json:"position"`
	PositionInVC int       `json:"positionInVC"`
	VC           string    `json:"vc"`
	Group        string    `json:"group"`
	State        string    `json:"state"` // Waiting or Preempting
	Priority     int       `json:"priority"`
	Since        time.Time `json:"since"`
	Pods         int       `json:"pods"` // those that exist and have no place
	User         string    `json:"user,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	// HoldsFree reports whether it has waited for so long that the scheduler holds cells for it when they become free in its
	// virtual cluster.
	HoldsFree bool `json:"holdsFree,omitempty"`
	Asks
}

// Asks is the request of a whole gang.
type Asks struct {
	// GPUs is the number of GPUs that its containers see.
	GPUs int `json:"gpus"`
	// ShareOfGPUs are GPUs that pods occupy without seeing them, in proportion to their processors and memory.
	// ShareReason explains why they aren't on CPU cells.
	ShareOfGPUs int    `json:"shareOfGPUs,omitempty"`
	ShareReason string `json:"shareReason,omitempty"`
	CPUCells    int    `json:"cpuCells,omitempty"`
	// OrShareOfGPUs are GPUs that it takes instead if no CPU cells are free where it may run; 0: it waits for CPU cells.
	OrShareOfGPUs int `json:"orShareOfGPUs,omitempty"`
	// MilliCPU and MemoryMB are the limits of the pods that exist, in thousandths of a processor and MiB.
	MilliCPU int64 `json:"milliCPU,omitempty"`
	MemoryMB int64 `json:"memoryMB,omitempty"`
}

// VirtualClusters lists all virtual clusters, in order of name.
type VirtualClusters struct {
	// Generation grows with each configuration that took effect since this scheduler leads.
	Generation int64            `json:"generation"`
	Items      []VirtualCluster `json:"items"`
	// Deleted are virtual clusters that the configuration no longer has, and that gangs still name. Running gangs
	// continue without a guarantee, and waiting gangs never start.
	Deleted []VirtualCluster `json:"deleted,omitempty"`
	// Problem is why the latest configuration was rejected, or "" if it is in effect.
	Problem string `json:"problem,omitempty"`
}

// VirtualCluster holds the resources that a team owns, and their use. Numbers count GPUs, except the numbers in CPU.
type VirtualCluster struct {
	Name        string   `json:"name"`
	Cells       []Cells  `json:"virtualCells,omitempty"`
	PinnedCells []string `json:"pinnedCells,omitempty"`
	Quota       *Quota   `json:"quota,omitempty"`
	// Policy is the name of one of cell.Policies.
	Policy     string `json:"policy"`
	Guaranteed int    `json:"guaranteed"`
	// Used counts the GPUs of guaranteed gangs, and Opportunistic the GPUs of other gangs of this virtual cluster.
	Used          int `json:"used"`
	Opportunistic int `json:"opportunistic"`
	Free          int `json:"free"`
	Bad           int `json:"bad"`
	// CPU counts CPU cells. It is nil if the virtual cluster owns and uses no CPU cells. Leaves are the leaves of both, by type.
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

// Quota limits the GPUs of one user or group in a virtual cluster. 0 means unlimited.
type Quota struct {
	PerUser  int            `json:"perUser,omitempty"`
	PerGroup int            `json:"perGroup,omitempty"`
	Users    map[string]int `json:"users,omitempty"`
	Groups   map[string]int `json:"groups,omitempty"`
}

// Validation is the effect that a configuration would have. The request's body is YAML in HiveD's format. If it has
// only virtualClusters, the hardware doesn't change.
type Validation struct {
	// Valid indicates that it would be accepted; Problems are errors and warnings.
	Valid    bool      `json:"valid"`
	Problems []Problem `json:"problems,omitempty"`
	// Changes are gangs that would lose or regain their guarantee, or wait where they run now.
	Changes []Change `json:"changes,omitempty"`
	// VirtualClusters has the virtual clusters that would own other cells than now.
	VirtualClusters []ChangedVirtualCluster `json:"virtualClusters,omitempty"`
}

// Problem is a mistake in a configuration. Line and Column count from 1; 0 is unknown.
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
	// Downgraded: it keeps running without its guarantee, so that others may preempt it. Restored: it
	// has its guarantee again. Refused: it waits, and its request would no longer be accepted. Orphaned: it continues
	// to run as an opportunistic gang, but its virtual cluster is deleted, so that the scheduler would reject its new
	// pods.
	Orphaned   = "orphaned"
	Downgraded = "downgraded"
	Restored   = "restored"
	Refused    = "refused"
)

// Change is an effect on a gang.
type Change struct {
	VC     string   `json:"vc"`
	Group  string   `json:"group"`
	Effect string   `json:"effect"`
	Pods   []string `json:"pods,omitempty"` // namespace/name
	GPUs   int      `json:"gpus"`
	// CPUCells are the CPU cells that it has or requests instead of GPUs.
	CPUCells int    `json:"cpuCells,omitempty"`
	User     string `json:"user,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Held returns the GPUs or CPU cells that the gang has or requests, as text.
func (c *Change) Held() string {
	if c.CPUCells > 0 {
		return plural.Of(c.CPUCells, "CPU cell")
	}
	return plural.Of(c.GPUs, "GPU")
}

// ChangedVirtualCluster is a virtual cluster before and after a change. A field is nil if the virtual cluster doesn't exist then.
type ChangedVirtualCluster struct {
	Name   string          `json:"name"`
	Before *VirtualCluster `json:"before,omitempty"`
	After  *VirtualCluster `json:"after,omitempty"`
}

// Nodes are the nodes of the configuration with their real devices.
type Nodes struct {
	Items []Node `json:"items"`
}

// Node is a node of the configuration. The lists are device indices, ascending.
type Node struct {
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
	// Reason explains why it isn't healthy.
	Reason     string  `json:"reason,omitempty"`
	Configured []int32 `json:"configured"`
	// Used are the devices that gangs hold.
	Used []int32 `json:"used,omitempty"`
	// Reported indicates that the node reports its devices. Without a report, all configured devices count as present.
	Reported bool `json:"reported"`
	// Missing are configured but not present, Unhealthy are present but not usable, and Unexpected are present but not configured.
	Missing    []int32 `json:"missing,omitempty"`
	Unhealthy  []int32 `json:"unhealthy,omitempty"`
	Unexpected []int32 `json:"unexpected,omitempty"`
	// Why has a reason for each device that isn't healthy, one sentence each.
	Why []string `json:"why,omitempty"`
	// Problem indicates that the node's report can't be read.
	Problem string `json:"problem,omitempty"`

	disagree bool // the agent and the configuration disagree about a GPU, which may be healthy
}

// CPUCells returns how many CPU cells a virtual cluster owns.
func (v *VirtualCluster) CPUCells() int {
	if v.CPU == nil {
		return 0
	}
	return v.CPU.Guaranteed
}
