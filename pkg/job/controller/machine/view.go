package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// acceptedFor is how long the API's confirmation of a deletion is trusted if the deletion isn't observed.
const acceptedFor = time.Minute

// View holds the facts about a Framework's pods that one process knows in addition to its cache, because the cache may lag behind. View ensures
// that a pod is treated as gone only if this is certain. The zero value is the state after a restart.
type View struct {
	made    map[string]made
	known   map[types.UID]bool // seen in the cache, or found to be gone by a query
	deleted map[types.UID]time.Time
	forced  map[types.UID]bool
	refused map[string]Refusal
	listed  bool // the pods that other processes made before are known
}

type made struct {
	pod  *corev1.Pod
	when time.Time
}

// Live queries the API itself if the cache isn't enough.
type Live struct {
	// Pod returns the pod with a name, or nil if the pod doesn't exist.
	Pod func(name string) (*corev1.Pod, error)
	// All returns all pods of the Framework.
	All func() ([]*corev1.Pod, error)
}

// Made records a pod that this process has created.
func (v *View) Made(p *corev1.Pod, now time.Time) {
	set(&v.made, p.Name, made{p, now})
	delete(v.refused, p.Name)
}

// Deleted records that the API accepted the deletion of a pod or, if gone is true, that the pod didn't exist.
func (v *View) Deleted(d Deletion, gone bool, now time.Time) {
	set(&v.deleted, d.UID, now)
	if d.Force {
		set(&v.forced, d.UID, true)
	}
	if m, ok := v.made[d.Name]; ok && gone && m.pod.UID == d.UID {
		delete(v.made, d.Name)
	}
}

// Refuse records that the API permanently rejects a pod.
func (v *View) Refuse(name string, r Refusal) { set(&v.refused, name, r) }

// Forget clears the view after an attempt that left no pods.
func (v *View) Forget() { *v = View{listed: true} }

func set[K comparable, V any](m *map[K]V, k K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = value
}

// Pods combines the pods in the cache with the pods that this process created. In two cases it also queries the API: once if another process
// began the Framework, and for pods that have been missing from the cache for a long time.
func (v *View) Pods(cached []*corev1.Pod, status *v1.FrameworkStatus, live Live, now time.Time) (Pods, error) {
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
	if err := v.list(status, live, now); err != nil {
		return out, err
	}
	return out, v.addMade(&out, live, now)
}

// list lists the pods of a Framework once if another process began the Framework. The cache may not yet have the last pods that the other process
// made, and if these pods counted as missing, their tasks would run twice.
func (v *View) list(status *v1.FrameworkStatus, live Live, now time.Time) error {
	if v.listed {
		return nil
	}
	if status != nil && status.State != v1.Completed {
		pods, err := live.All()
		if err != nil {
			return err
		}
		for _, p := range pods {
			if !v.known[p.UID] {
				v.Made(p, now)
			}
		}
	}
	v.listed = true
	return nil
}

// addMade adds the pods that this process created and that the cache doesn't have yet.
func (v *View) addMade(out *Pods, live Live, now time.Time) error {
	for name, m := range v.made {
		if v.known[m.pod.UID] {
			delete(v.made, name) // the cache has it, or had it and it is gone
			continue
		}
		if now.Sub(m.when) >= notSeenAfter {
			p, err := live.Pod(name)
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
