package api

import "time"

// Dimensions by which GPU time can be grouped: the users, the GPUs, and the time.
const (
	ByVC    = "vc"
	ByUser  = "user"
	ByType  = "type"
	ByHour  = "hour"
	ByDay   = "day"
	ByMonth = "month"
)

// Dimensions returns the valid values for UsageQuery.By. A query may contain at most one of hour, day and month.
func Dimensions() []string { return []string{ByVC, ByUser, ByType, ByHour, ByDay, ByMonth} }

// UsageQuery selects GPU time. Empty fields don't restrict the selection.
type UsageQuery struct {
	User, VirtualCluster, Type string
	// Since and Until are widened to whole hours in UTC. Until is exclusive; a zero Until means now.
	Since, Until time.Time
	// By lists the dimensions by which rows are grouped. If it is empty, the result has a single row.
	By []string
}

// Usage is GPU time, sorted by period, virtual cluster, user and type.
type Usage struct {
	Since time.Time   `json:"since"`
	Until time.Time   `json:"until"`
	Items []UsageItem `json:"items"`
	Total GPUTime     `json:"total"`
}

// UsageItem is the GPU time of one row. Dimensions that the query doesn't group by are empty.
type UsageItem struct {
	Period         *time.Time `json:"period,omitempty"` // its beginning, UTC
	VirtualCluster string     `json:"virtualCluster,omitempty"`
	User           string     `json:"user,omitempty"`
	Type           string     `json:"type,omitempty"` // also empty if the model is unknown
	GPUTime
}

// GPUTime is measured in GPU seconds: holding eight GPUs for a minute takes 480 GPU seconds.
type GPUTime struct {
	Guaranteed    int64 `json:"guaranteedSeconds"`
	Opportunistic int64 `json:"opportunisticSeconds"`
	// Preempted and Failed are the parts of Guaranteed and Opportunistic for attempts that were preempted or failed, so that their work was lost.
	Preempted int64 `json:"preemptedSeconds"`
	Failed    int64 `json:"failedSeconds"`
}

// Held returns the sum of guaranteed and opportunistic GPU time.
func (t GPUTime) Held() int64 { return t.Guaranteed + t.Opportunistic }

// Add adds o to t.
func (t *GPUTime) Add(o GPUTime) {
	t.Guaranteed += o.Guaranteed
	t.Opportunistic += o.Opportunistic
	t.Preempted += o.Preempted
	t.Failed += o.Failed
}

// Hold describes the GPUs that one task holds.
type Hold struct {
	Pod, Job, User, VirtualCluster, Type string
	Opportunistic                        bool
	GPUs                                 int64
}

// GPU is the current state of one GPU of a machine. A value that isn't measured is nil.
type GPU struct {
	Index         string   `json:"gpu"`
	UUID          string   `json:"uuid,omitempty"`
	Model         string   `json:"model,omitempty"`
	Namespace     string   `json:"namespace,omitempty"` // with Pod: the pod that has it
	Pod           string   `json:"pod,omitempty"`
	Utilization   *float64 `json:"utilizationPercent"`
	MemoryUsedMiB *float64 `json:"memoryUsedMiB"`
	MemoryFreeMiB *float64 `json:"memoryFreeMiB"`
	PowerWatts    *float64 `json:"powerWatts"`
}
