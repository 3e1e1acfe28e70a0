package job

import (
	"slices"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// VirtualCluster is the one that the job runs in, or ran in.
func (j *Job) VirtualCluster() string {
	switch {
	case j.framework != nil:
		return j.framework.Labels[v1.LabelVC]
	case j.archived != nil:
		return j.archived.VirtualCluster
	}
	return ""
}

// VirtualClusters are those that its pods ask for cells of: what was made counts, and not what the job file says. A request that can't be
// read is of the virtual cluster "", which is granted to no one.
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

// Told is a text without names of jobs that aren't told, as the scheduler writes them: USER~JOB/GROUP.
func (n NameOf) Told(text string) string {
	if n == nil {
		return text
	}
	return n.text(text)
}
