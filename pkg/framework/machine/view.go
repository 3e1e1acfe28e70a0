package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// acceptedFor is how long the API's word that it deletes a pod is taken without seeing it happen.
const acceptedFor = time.Minute

// View is what one process knows of a Framework's pods beyond its cache, which may be late. It makes
// sure that a pod counts as gone only where that is certain. The zero value knows nothing, as after
// a restart.
type View struct {
	made    map[string]made
	known   map[types.UID]bool // seen in the cache, or found to be gone by asking
	deleted map[types.UID]time.Time
	forced  map[types.UID]bool
	refused map[string]Refusal
}

type made struct {
	pod  *corev1.Pod
	when time.Time
}

// Lookup asks the API itself for a pod; nil where there is none.
type Lookup func(name string) (*corev1.Pod, error)

// Made records a pod that the API has made.
func (v *View) Made(p *corev1.Pod, now time.Time) {
	set(&v.made, p.Name, made{p, now})
	delete(v.refused, p.Name)
}

// Deleted records that the API took the deletion of a pod. gone: there was no such pod.
func (v *View) Deleted(d Deletion, gone bool, now time.Time) {
	set(&v.deleted, d.UID, now)
	if d.Force {
		set(&v.forced, d.UID, true)
	}
	if m, ok := v.made[d.Name]; ok && gone && m.pod.UID == d.UID {
		delete(v.made, d.Name)
	}
}

// Refuse records that the API will never make a pod as it is.
func (v *View) Refuse(name string, r Refusal) { set(&v.refused, name, r) }

// Forget begins anew, after an attempt that left nothing behind.
func (v *View) Forget() { *v = View{} }

func set[K comparable, V any](m *map[K]V, k K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = value
}

// Pods puts together what the cache has, what this process made, and what the API says where neither
// is enough. Calls of lookup are rare: after a restart, and for pods that the cache is long missing.
func (v *View) Pods(cached []*corev1.Pod, status *v1.FrameworkStatus, lookup Lookup, now time.Time) (Pods, error) {
	out := Pods{ByName: make(map[string]*corev1.Pod, len(cached)), Fresh: map[string]bool{}, Deleted: map[types.UID]bool{}, Forced: v.forced, Refused: v.refused}
	for _, p := range cached {
		out.ByName[p.Name] = p
		if !v.known[p.UID] {
			set(&v.known, p.UID, true)
		}
	}
	for uid, at := range v.deleted {
		if now.Sub(at) < acceptedFor {
			out.Deleted[uid] = true
		}
	}
	if err := v.addMade(&out, lookup, now); err != nil {
		return out, err
	}
	return out, v.addRecorded(&out, status, lookup)
}

// addMade adds pods that the cache doesn't have yet.
func (v *View) addMade(out *Pods, lookup Lookup, now time.Time) error {
	for name, m := range v.made {
		if v.known[m.pod.UID] {
			delete(v.made, name) // the cache has it, or had it and it is gone
			continue
		}
		if now.Sub(m.when) >= notSeenAfter {
			p, err := lookup(name)
			if err != nil {
				return err
			}
			if p == nil || p.UID != m.pod.UID {
				set(&v.known, m.pod.UID, true)
				delete(v.made, name)
				continue
			}
			m = made{p, now}
			v.made[name] = m
		}
		out.ByName[name], out.Fresh[name] = m.pod, true
	}
	return nil
}

// addRecorded looks for pods that the status tells of and this process has never seen.
func (v *View) addRecorded(out *Pods, status *v1.FrameworkStatus, lookup Lookup) error {
	if status == nil || status.State == v1.Completed {
		return nil
	}
	for _, r := range status.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			a := &t.AttemptStatus
			if t.State == v1.Completed || t.State == v1.AttemptCompleted || a.PodUID == nil || v.known[types.UID(*a.PodUID)] {
				continue
			}
			if p := out.ByName[a.PodName]; p != nil && string(p.UID) == *a.PodUID {
				continue
			}
			p, err := lookup(a.PodName)
			switch {
			case err != nil:
				return err
			case p == nil || string(p.UID) != *a.PodUID:
				set(&v.known, types.UID(*a.PodUID), true)
			default:
				out.ByName[a.PodName] = p
			}
		}
	}
	return nil
}
