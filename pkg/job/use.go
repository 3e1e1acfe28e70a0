package job

import (
	"slices"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// Use is what a job takes that is not everybody's to take.
type Use struct {
	User, Group    string
	VirtualCluster string
	// Priority is a name of the job protocol; "" is the default.
	Priority string
	// Storages are the claims that its tasks mount, in order.
	Storages []string
	// HostNetwork reports whether its tasks have the network of their machines.
	HostNetwork bool
}

// UseOf reads it from a Framework: what runs counts, and not what a job file says.
func UseOf(f *v1.Framework) Use {
	u := Use{User: f.Labels[v1.LabelUser], Group: f.Labels[v1.LabelGroup], VirtualCluster: f.Labels[v1.LabelVC], Priority: f.Annotations[v1.AnnotationPriority],
		HostNetwork: f.Annotations[v1.AnnotationHostNetwork] == "true"}
	for i := range f.Spec.TaskRoles {
		pod := &f.Spec.TaskRoles[i].Task.Pod.Spec
		u.HostNetwork = u.HostNetwork || pod.HostNetwork
		for k := range pod.Volumes {
			if claim := pod.Volumes[k].PersistentVolumeClaim; claim != nil && !slices.Contains(u.Storages, claim.ClaimName) {
				u.Storages = append(u.Storages, claim.ClaimName)
			}
		}
	}
	slices.Sort(u.Storages)
	return u
}
