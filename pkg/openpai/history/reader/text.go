package reader

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// masked returns the text of a job file with masked secrets, because OpenPAI didn't mask all secrets. If the text can't be parsed, masked can't find
// the secrets, and returns "".
func masked(text string) string {
	out, err := protocol.MaskStored([]byte(text))
	if err != nil {
		return ""
	}
	return string(out)
}

// writtenRoles returns the names of roles as the user has written them. The keys are the names in the job's object, where OpenPAI kept only
// lowercase letters and digits.
func writtenRoles(config string) map[string]string {
	var file struct {
		TaskRoles map[string]yaml.Node `yaml:"taskRoles"`
	}
	out := map[string]string{}
	if yaml.Unmarshal([]byte(config), &file) != nil {
		return out
	}
	for name := range file.TaskRoles {
		out[strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToLower(name))] = name
	}
	return out
}

// claim describes the GPUs of each task of a role.
type claim struct {
	gpus          int32
	model         string
	opportunistic bool
}

// maxHeld is larger than the number of GPUs of any machine.
const maxHeld = 1024

// gpuResources lists the resources that count as the GPUs of a task if HiveD didn't place the task.
var gpuResources = []string{"nvidia.com/gpu", "amd.com/gpu"}

// claims returns the GPUs of a job's tasks, by role. The result is empty for a job without GPUs, even if HiveD allocated cells for the job's
// processors.
func claims(f *v1.Framework) map[string]claim {
	out := map[string]claim{}
	if text := f.Annotations[v1.AnnotationGPUs]; text == "" || text == "0" {
		return out
	}
	for i := range f.Spec.TaskRoles {
		r := &f.Spec.TaskRoles[i]
		if c := claimOf(r); c.gpus > 0 && c.gpus <= maxHeld {
			out[r.Name] = c
		}
	}
	return out
}

func claimOf(r *v1.TaskRole) (out claim) {
	if text := r.Task.Pod.Annotations[annotation.SpecKey]; text != "" {
		asks, err := annotation.ParseRequest(text, r.Name)
		if err != nil {
			return claim{}
		}
		if sets := asks.Sets(); asks.Set < len(sets) {
			out.gpus = int32(min(sets[asks.Set].Cells, maxHeld+1))
		}
		out.model, out.opportunistic = asks.LeafType, asks.Priority < 0
		return out
	}
	total := int64(0)
	for i := range r.Task.Pod.Spec.Containers {
		for name, q := range r.Task.Pod.Spec.Containers[i].Resources.Limits {
			for _, gpu := range gpuResources {
				if string(name) == gpu {
					total += min(max(q.Value(), 0), maxHeld+1)
				}
			}
		}
	}
	out.gpus = int32(min(total, maxHeld+1))
	return out
}
