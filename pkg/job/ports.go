package job

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Ports returns the ports that the runtime allocates to a task, by label. It returns nil if the ports aren't known, or if the job has no ports with
// labels.
func (d *Detail) Ports(t *Task) map[string][]int {
	if d.job == nil || t.PodUID == "" && (d.job.framework == nil || d.job.hostNetwork()) {
		return nil
	}
	if f := d.job.framework; f != nil {
		i := slices.IndexFunc(f.Spec.TaskRoles, func(r v1.TaskRole) bool { return r.Name == t.RoleObject })
		if i < 0 {
			return nil
		}
		return ports(f.Spec.TaskRoles[i].Task.Pod.Annotations[v1.AnnotationPorts], t.PodUID, d.job.hostNetwork())
	}
	file := d.job.file()
	i := slices.IndexFunc(file.Roles, func(r protocol.Role) bool { return r.Name == t.Role })
	if i < 0 {
		return nil
	}
	list := []spec.Port{}
	for _, p := range file.Roles[i].Ports {
		list = append(list, spec.Port{Label: p.Label, Count: p.Count})
	}
	return portsOf(list, t.PodUID, file.Extras.HostNetwork, 0, 0)
}

// AcceptsSSH reports whether the job file has a plugin that lets tasks of a role accept SSH connections.
func (d *Detail) AcceptsSSH(role string) bool {
	if d.job == nil {
		return false
	}
	roles := d.job.file().Roles
	i := slices.IndexFunc(roles, func(r protocol.Role) bool { return r.Name == role })
	return i >= 0 && slices.ContainsFunc(roles[i].Plugins, func(p protocol.Plugin) bool { return p.Name == "ssh" })
}

func (j *Job) hostNetwork() bool { return j.framework.Annotations[v1.AnnotationHostNetwork] == "true" }

// ports reads the ports from an annotation of a task's pod.
func ports(annotation, podUID string, host bool) map[string][]int {
	var asked struct {
		Start int `json:"schedulePortStart"`
		End   int `json:"schedulePortEnd"`
		Ports map[string]struct {
			Count int `json:"count"`
		} `json:"ports"`
	}
	if json.Unmarshal([]byte(annotation), &asked) != nil {
		return nil
	}
	list := []spec.Port{}
	for _, l := range slices.Sorted(maps.Keys(asked.Ports)) {
		list = append(list, spec.Port{Label: l, Count: asked.Ports[l].Count})
	}
	return portsOf(list, podUID, host, asked.Start, asked.End)
}

func portsOf(list []spec.Port, podUID string, host bool, start, end int) map[string][]int {
	if host {
		return peers.HostPorts(podUID, list, start, end)
	}
	return peers.PodPorts(list)
}
