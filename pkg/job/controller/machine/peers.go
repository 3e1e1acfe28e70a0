package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

// Gang reports whether the tasks of a Framework wait for each other's addresses before they begin.
func Gang(f *v1.Framework) bool {
	return f.OwnRuntime() && f.Annotations[v1.AnnotationGang] != "false" && Many(f)
}

// Many reports whether a Framework has more than one task.
func Many(f *v1.Framework) bool {
	n := int32(0)
	for _, r := range f.Spec.TaskRoles {
		n += r.TaskNumber
	}
	return n > 1
}

// Published records that the addresses were published.
func Published(status *v1.FrameworkStatus, at time.Time) {
	t := metav1.NewTime(at)
	status.AttemptStatus.PeersTime = &t
}

// peers requests the publication of all addresses once every task has an address.
func (s *step) peers() {
	if s.status.AttemptStatus.PeersTime == nil && Gang(s.Framework) {
		s.Peers = Peers(s.Framework, s.status)
	}
}

// Peers returns the addresses of all tasks, or nil if a task has no address yet.
func Peers(f *v1.Framework, status *v1.FrameworkStatus) *peers.Peers {
	host := f.Annotations[v1.AnnotationHostNetwork] == "true"
	all := &peers.Peers{Attempt: status.AttemptStatus.ID}
	for _, r := range status.AttemptStatus.TaskRoleStatuses {
		one := peers.Role{Name: r.Name}
		leaving := false
		for _, t := range r.TaskStatuses {
			if t.DeletionPending {
				leaving = true
				continue
			}
			if leaving {
				return nil // a task is being replaced by another
			}
			a := &t.AttemptStatus
			if a.PodIP == nil || a.PodUID == nil {
				return nil
			}
			one.PodIPs = append(one.PodIPs, *a.PodIP)
			hostIP := ""
			if a.PodHostIP != nil {
				hostIP = *a.PodHostIP
			}
			one.HostIPs = append(one.HostIPs, hostIP)
			if host {
				one.PodUIDs = append(one.PodUIDs, *a.PodUID)
			}
		}
		if len(one.PodIPs) > 0 {
			all.Roles = append(all.Roles, one)
		}
	}
	return all
}
