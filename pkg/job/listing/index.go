package listing

import (
	"container/list"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Index keeps the jobs of a cluster in the order of lists, and also in separate orders for the fields that lists use as filters. An update costs
// little, and the cost of a page depends only on its number of rows. Index is safe for concurrent use.
type Index struct {
	mu   sync.Mutex
	jobs map[string]*entry // by Framework
	uids map[string]*entry
	// pods holds the pods that have not begun to run, by the names of their Frameworks. Pods may arrive before their Framework.
	pods map[string]map[types.UID]Start
	// stale holds the entries whose states must be computed again. This happens only when a state is read, because the pods of a large job may
	// change many times before that.
	stale map[*entry]bool

	all        order
	users, vcs map[string]*order
	phases     map[Phase]*order
	unplaced   order
	log        *changes // nil if no reader follows changes
}

// entry is one job. Its row contains the state that settle last computed.
type entry struct {
	brief *Brief
	row   Row
	// The other fields are for changes: the entry's position in the order of changes, and the last versions that affected the entry.
	noted  *list.Element
	seen   Versions
	unsure bool
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		jobs: map[string]*entry{}, uids: map[string]*entry{}, pods: map[string]map[types.UID]Start{}, stale: map[*entry]bool{},
		users: map[string]*order{}, vcs: map[string]*order{}, phases: map[Phase]*order{},
	}
}

// Put adds a Framework to the index, or updates it.
func (x *Index) Put(b *Brief) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.jobs[b.Job.Framework]
	if e != nil && !samePlace(e.brief, b) {
		x.drop(e)
		if x.log != nil {
			x.bury(e, e.brief, 0)
		}
		e = nil
	}
	if e == nil {
		e = &entry{row: b.Row(State{})}
		x.jobs[b.Job.Framework], x.uids[b.Job.UID] = e, e
		x.all.add(e)
		of(x.users, b.Job.User).add(e)
		of(x.vcs, b.Job.VirtualCluster).add(e)
	}
	e.brief = b
	x.stale[e] = true
	if x.log != nil {
		x.seen(e)
	}
}

// samePlace reports whether two versions of a job have the same position in all orders.
func samePlace(a, b *Brief) bool {
	return a.Job.UID == b.Job.UID && a.Job.Submitted.Equal(b.Job.Submitted) && a.Job.User == b.Job.User && a.Job.VirtualCluster == b.Job.VirtualCluster
}

// Remove removes a Framework that no longer exists. If told is true, b is the Framework in the API server's delete event. Otherwise it is the
// last known state.
func (x *Index) Remove(b *Brief, told bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	version := uint64(0)
	if told && x.log != nil {
		version = b.Version
		x.log.hear(Versions{Frameworks: version})
	}
	e := x.jobs[b.Job.Framework]
	if e == nil || e.brief.Job.UID != b.Job.UID {
		return
	}
	x.drop(e)
	if x.log != nil {
		x.bury(e, b, version)
	}
}

// Unfinished returns how many unfinished jobs a user has, and how many tasks these jobs have.
func (x *Index) Unfinished(user string) (jobs, tasks int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if x.users[user] == nil {
		return 0, 0
	}
	for _, e := range *x.users[user] {
		if !Phase(e.brief.Job.State).Done() { // one that is being deleted may have finished
			jobs++
			tasks += e.row.Tasks
		}
	}
	return jobs, tasks
}

// drop removes an entry from all maps and orders of the index.
func (x *Index) drop(e *entry) {
	delete(x.jobs, e.row.Framework)
	delete(x.uids, e.row.UID)
	delete(x.stale, e)
	x.all.remove(e)
	remove(x.users, e.row.User, e)
	remove(x.vcs, e.row.VirtualCluster, e)
	x.unphase(e)
}

func (x *Index) unphase(e *entry) {
	if e.row.State != "" {
		remove(x.phases, Phase(e.row.State), e)
	}
	if e.row.Unplaced {
		x.unplaced.remove(e)
	}
}

// Pod adds or updates a pod of a Framework. version is the pod's version, or 0 if the index doesn't record changes.
func (x *Index) Pod(framework string, uid types.UID, s Start, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.Begun {
		x.unpod(framework, uid)
	} else {
		x.pod(framework, uid, s)
	}
	x.podSeen(framework, version)
}

// DeletePod removes a pod that no longer exists. version is that of the deletion, or 0 if it is unknown.
func (x *Index) DeletePod(framework string, uid types.UID, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unpod(framework, uid)
	x.podSeen(framework, version)
}

func (x *Index) pod(framework string, uid types.UID, s Start) {
	pods := x.pods[framework]
	if have, ok := pods[uid]; ok && have == s {
		return
	}
	if pods == nil {
		pods = map[types.UID]Start{}
		x.pods[framework] = pods
	}
	pods[uid] = s
	x.touch(framework)
}

// unpod removes a pod that no longer matters for the state of its job.
func (x *Index) unpod(framework string, uid types.UID) {
	pods := x.pods[framework]
	if _, ok := pods[uid]; !ok {
		return
	}
	delete(pods, uid)
	if len(pods) == 0 {
		delete(x.pods, framework)
	}
	x.touch(framework)
}

func (x *Index) touch(framework string) {
	if e := x.jobs[framework]; e != nil {
		x.stale[e] = true
	}
}

// Len returns the number of jobs.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.jobs)
}

// Row returns the row of the job with a Framework's name. The second result is false if the index has no such job.
func (x *Index) Row(framework string) (Row, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if e := x.jobs[framework]; e != nil {
		return e.row, true
	}
	return Row{}, false
}

// Has reports whether the index has the job with a UID.
func (x *Index) Has(uid string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.uids[uid] != nil
}

// Named reports whether the index has a job with a Framework's name.
func (x *Index) Named(framework string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.jobs[framework] != nil
}

// Rows returns the first n jobs that the filter selects after its cursor, starting with the newest job, or all of them if n is 0. It ignores the
// filter's limit.
func (x *Index) Rows(f Filter, n int) ([]Row, error) {
	after, err := ReadCursor(f.Cursor)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	out := []Row{}
	for e := range newest(x.sources(&f), after) {
		if e.row.Submitted.Before(f.Since) {
			break
		}
		if f.Selects(&e.row) {
			out = append(out, e.row)
		}
		if n > 0 && len(out) == n {
			break
		}
	}
	return out, nil
}

// Sorted returns all jobs that the filter selects, in the filter's order. The function Ordered needs them as its live jobs. Sorted ignores the
// filter's cursor and limit.
func (x *Index) Sorted(f Filter) []Row {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	out := []Row{}
	for e := range newest(x.sources(&f), Cursor{}) {
		if f.Selects(&e.row) {
			out = append(out, e.row)
		}
	}
	f.Sort(out)
	return out
}

// settle computes the states that may have changed.
func (x *Index) settle() {
	for e := range x.stale {
		pods := make([]Start, 0, len(x.pods[e.brief.Job.Framework]))
		for _, s := range x.pods[e.brief.Job.Framework] {
			pods = append(pods, s)
		}
		row := e.brief.Row(e.brief.State(pods, false, 0))
		row.Unplaced = e.brief.State(pods, true, 1).Phase == Queued
		if row.State != e.row.State || row.Unplaced != e.row.Unplaced {
			x.unphase(e)
			of(x.phases, Phase(row.State)).add(e)
			if row.Unplaced {
				x.unplaced.add(e)
			}
		}
		e.row = row
		if x.log != nil {
			x.note(e)
		}
	}
	clear(x.stale)
}

// sources returns a few orders that together contain all jobs that a filter selects. It chooses them so that they contain few other jobs.
func (x *Index) sources(f *Filter) []*order {
	best := []*order{&x.all}
	narrow := func(some []*order) {
		if total(some) < total(best) {
			best = some
		}
	}
	if f.User != "" {
		narrow(these(x.users, f.User))
	}
	if f.VirtualCluster != "" {
		narrow(these(x.vcs, f.VirtualCluster))
	}
	if len(f.Users) > 0 {
		narrow(these(x.users, f.Users...))
	}
	if len(f.VirtualClusters) > 0 {
		narrow(these(x.vcs, f.VirtualClusters...))
	}
	if v := f.Visible; v != nil && !v.All {
		narrow(append(these(x.users, v.User), these(x.vcs, v.VCs...)...))
	}
	if len(f.Phases) == 0 {
		return best
	}
	var phases []*order
	for _, p := range f.Phases {
		if o := x.phases[p]; o != nil {
			phases = append(phases, o)
		}
	}
	if slices.Contains(f.Phases, Queued) {
		phases = append(phases, &x.unplaced)
	}
	if total(phases) < total(best) {
		return phases
	}
	return best
}

// these returns the orders for the given keys that exist.
func these(by map[string]*order, keys ...string) (out []*order) {
	for _, key := range keys {
		if o := by[key]; o != nil && !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	return out
}
