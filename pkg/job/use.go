package job

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Use lists the resources of a job that only some users may use.
type Use struct {
	User, Group    string
	VirtualCluster string
	// Priority is a name from the job protocol. "" is the default priority.
	Priority string
	// Storages are the claims that the job's tasks mount, in order.
	Storages []string
	// HostNetwork reports whether the job's tasks use the network of their machines.
	HostNetwork bool
}

// UseOf returns the Use of a job, based on its Framework and pods. It doesn't read the job file.
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

// allowed returns an error for a job that may no longer use one of its resources, or that mounts more of a storage than a new job would. Such a
// storage may have been shared or writable when the job was submitted. allow may be nil.
func (c *Client) allowed(ctx context.Context, f *v1.Framework, allow func(Use) error) error {
	use := UseOf(f)
	if allow != nil {
		if err := allow(use); err != nil {
			return err
		}
	}
	if len(use.Storages) == 0 {
		return nil
	}
	known, err := c.storages(ctx)
	if known == nil || err != nil {
		return c.Explain(err)
	}
	for i := range f.Spec.TaskRoles {
		pod := &f.Spec.TaskRoles[i].Task.Pod.Spec
		for k := range pod.Volumes {
			claim := pod.Volumes[k].PersistentVolumeClaim
			if claim == nil {
				continue
			}
			if why := beyond(pod, &pod.Volumes[k], known[claim.ClaimName], use.User); why != "" {
				j := Of(f)
				return hint.Errorf("submit it again, with today's storages: paictl job clone "+j.Title()+" --as NAME -o job.yaml",
					"%s mounts the storage %s as it was when the job was submitted: %s", j.Title(), claim.ClaimName, why)
			}
		}
	}
	return nil
}

// beyond describes how the mounts of a volume exceed a user's present rights to its storage. It returns "" if they don't.
func beyond(pod *corev1.PodSpec, v *corev1.Volume, now render.Storage, user string) string {
	if now.Claim == "" {
		return "it is gone"
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			switch {
			case m.Name != v.Name:
			case now.PerUser && m.SubPath != user:
				return "jobs see only the folder of their user there now"
			case now.ReadOnly && !m.ReadOnly && !v.PersistentVolumeClaim.ReadOnly:
				return "jobs only read there now"
			}
		}
	}
	return ""
}
