package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// acceptedFor is how long the API's confirmation of a deletion is trusted without an observed deletion.
const acceptedFor = time.Minute

// View is the knowledge of one process about a Framework's pods beyond its cache, which may be late. It makes sure that a pod counts as
// gone only if that is certain. The zero value is the state after a restart.
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

// Live queries the API itself, if the cache isn't enough.
type Live struct {
	// Pod returns a pod by its name, or nil if it doesn't exist.
	Pod func(name string) (*corev1.Pod, error)
	// All returns all pods of the Framework.
	All func() ([]*corev1.Pod, error)
}

// Made records a pod that the API has made.
func (v *View) Made(p *corev1.Pod, now time.Time) {
	set(&v.made, p.Name, made{p, now})
	delete(v.refused, p.Name)
}

// Deleted records that the API accepted the deletion of a pod, or, if gone, that the pod didn't exist.
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

// Forget starts over, after an attempt that left nothing behind.
func (v *View) Forget() { *v = View{listed: true} }

func set[K comparable, V any](m *map[K]V, k K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = value
}

// Pods combines the pods of the cache and the pods that this process created. It also queries the API: once if another process began
// the Framework, and for pods that have been missing from the cache for long.
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

// list lists once the pods of a Framework that another process began: the cache may lack some that this one made last,
// and if they counted as missing, they would run twice.
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

// addMade adds pods that the cache doesn't have yet.
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
