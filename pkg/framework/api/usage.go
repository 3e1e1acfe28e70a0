package api

import "time"

// What GPU time can be summed up by: who held GPUs, which, and when.
const (
	ByVC    = "vc"
	ByUser  = "user"
	ByType  = "type"
	ByHour  = "hour"
	ByDay   = "day"
	ByMonth = "month"
)

// Dimensions are what UsageQuery.By may have. Of the periods it may have one.
func Dimensions() []string { return []string{ByVC, ByUser, ByType, ByHour, ByDay, ByMonth} }

// UsageQuery asks for GPU time. Empty fields select all.
type UsageQuery struct {
	User, VirtualCluster, Type string
	// Since and Until are widened to whole hours, UTC. Until is the end; zero is now.
	Since, Until time.Time
	// By is what there is a row for; empty: one row for all.
	By []string
}

// Usage is GPU time, in order of period, virtual cluster, user and type.
type Usage struct {
	Since time.Time   `json:"since"`
	Until time.Time   `json:"until"`
	Items []UsageItem `json:"items"`
	Total GPUTime     `json:"total"`
}

// UsageItem is the GPU time of one row; what it isn't summed up by is empty.
type UsageItem struct {
	Period         *time.Time `json:"period,omitempty"` // its beginning, UTC
	VirtualCluster string     `json:"virtualCluster,omitempty"`
	User           string     `json:"user,omitempty"`
	Type           string     `json:"type,omitempty"` // empty also where no one told the model
	GPUTime
}

// GPUTime is in GPU seconds: eight GPUs held for a minute are 480.
type GPUTime struct {
	Guaranteed    int64 `json:"guaranteedSeconds"`
	Opportunistic int64 `json:"opportunisticSeconds"`
	// Preempted and Failed are the part of both that attempts had which ended so: their work was thrown away.
	Preempted int64 `json:"preemptedSeconds"`
	Failed    int64 `json:"failedSeconds"`
}

// Held is all of it.
func (t GPUTime) Held() int64 { return t.Guaranteed + t.Opportunistic }

// Add adds another.
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

// GPU is what one GPU of a machine does now; what isn't measured is nil.
type GPU struct {
	Index         string   `json:"gpu"`
	UUID          string   `json:"uuid,omitempty"`
	Model         string   `json:"model,omitempty"`
	Namespace     string   `json:"namespace,omitempty"` // with Pod: who has it
	Pod           string   `json:"pod,omitempty"`
	Utilization   *float64 `json:"utilizationPercent"`
	MemoryUsedMiB *float64 `json:"memoryUsedMiB"`
	MemoryFreeMiB *float64 `json:"memoryFreeMiB"`
	PowerWatts    *float64 `json:"powerWatts"`
}
