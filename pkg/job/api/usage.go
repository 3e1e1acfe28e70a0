package api

import "time"

// Dimensions of sums of GPU time: who held GPUs, which GPUs, and when.
const (
	ByVC    = "vc"
	ByUser  = "user"
	ByType  = "type"
	ByHour  = "hour"
	ByDay   = "day"
	ByMonth = "month"
)

// Dimensions returns the values that UsageQuery.By may have. It may have at most one of the periods.
func Dimensions() []string { return []string{ByVC, ByUser, ByType, ByHour, ByDay, ByMonth} }

// UsageQuery selects GPU time. Empty fields select all.
type UsageQuery struct {
	User, VirtualCluster, Type string
	// Since and Until are widened to whole hours, UTC. Until is exclusive; zero is now.
	Since, Until time.Time
	// By holds the dimensions for the grouping of rows. If it is empty, the result has one row for all.
	By []string
}

// Usage is GPU time, in order of period, virtual cluster, user and type.
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

// GPUTime is in GPU seconds: eight GPUs held for a minute are 480.
type GPUTime struct {
	Guaranteed    int64 `json:"guaranteedSeconds"`
	Opportunistic int64 `json:"opportunisticSeconds"`
	// Preempted and Failed are the parts of both that attempts with these outcomes had: their work was lost.
	Preempted int64 `json:"preemptedSeconds"`
	Failed    int64 `json:"failedSeconds"`
}

// Held returns the sum of guaranteed and opportunistic GPU time.
func (t GPUTime) Held() int64 { return t.Guaranteed + t.Opportunistic }

// Add adds another GPUTime.
func (t *GPUTime) Add(o GPUTime) {
	t.Guaranteed += o.Guaranteed
	t.Opportunistic += o.Opportunistic
	t.Preempted += o.Preempted
	t.Failed += o.Failed
}

// Hold is the GPUs that one task holds.
type Hold struct {
	Pod, Job, User, VirtualCluster, Type string
	Opportunistic                        bool
	GPUs                                 int64
}

// GPU is the current state of one GPU of a machine. Values that aren't measured are nil.
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
