package job

import (
	"slices"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// VirtualCluster returns the virtual cluster of a live or finished job.
func (j *Job) VirtualCluster() string {
	switch {
	case j.framework != nil:
		return j.framework.Labels[v1.LabelVC]
	case j.archived != nil:
		return j.archived.VirtualCluster
	}
	return ""
}

// VirtualClusters returns the virtual clusters that the job's pods request cells from. It reads the pods, not the job file. A request that can't be
// read counts as a request to the virtual cluster "", which no user is granted.
func (p *Prepared) VirtualClusters() []string {
	out := []string{p.Objects.Framework.Labels[v1.LabelVC]}
	for i := range p.Objects.Framework.Spec.TaskRoles {
		text, ok := p.Objects.Framework.Spec.TaskRoles[i].Task.Pod.Annotations[annotation.SpecKey]
		if !ok {
			continue
		}
		vc := ""
		if asks, err := annotation.ParseRequest(text, p.Objects.Framework.Name); err == nil {
			vc = asks.VirtualCluster
		}
		if !slices.Contains(out, vc) {
			out = append(out, vc)
		}
	}
	return out
}

// Redact returns a text in which the names of jobs that the reader may not know are replaced. It finds names in the form that the scheduler writes,
// USER~JOB/GROUP.
func (n NameOf) Redact(text string) string {
	if n == nil {
		return text
	}
	return n.text(text)
}
