package listing

import (
	"container/list"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Index keeps the jobs of a cluster in the order of lists, sorted by the fields that lists use as filters. A change costs little, and
// the cost of a page depends only on its rows. It is safe for concurrent use.
type Index struct {
	mu   sync.Mutex
	jobs map[string]*entry // by Framework
	uids map[string]*entry
	// pods holds the pods that have not begun, by Framework; they may arrive before their Framework.
	pods map[string]map[types.UID]Start
	// stale holds the entries whose state must be computed again. A state is computed again when it is read, because a large job's pods
	// change many times in between.
	stale map[*entry]bool

	all        order
	users, vcs map[string]*order
	phases     map[Phase]*order
	unplaced   order
	log        *changes // nil if no reader follows changes
}

// entry is one job. Its row has its latest settled state.
type entry struct {
	brief *Brief
	row   Row
	// The rest is for the log of changes: the entry's position in it, and the last versions that touched the entry.
	noted  *list.Element
	seen   Seen
	unsure bool
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		jobs: map[string]*entry{}, uids: map[string]*entry{}, pods: map[string]map[types.UID]Start{}, stale: map[*entry]bool{},
		users: map[string]*order{}, vcs: map[string]*order{}, phases: map[Phase]*order{},
	}
}

// Put takes a Framework that is new or has changed.
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

// samePlace reports whether a job keeps its positions in the orders.
func samePlace(a, b *Brief) bool {
	return a.Job.UID == b.Job.UID && a.Job.Submitted.Equal(b.Job.Submitted) && a.Job.User == b.Job.User && a.Job.VirtualCluster == b.Job.VirtualCluster
}

// Remove removes a Framework that is gone. If told is true, b is the last state from the API server's delete event; otherwise it is the
// last known state.
func (x *Index) Remove(b *Brief, told bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	version := uint64(0)
	if told && x.log != nil {
		version = b.Version
		x.log.hear(Seen{Frameworks: version})
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

// Unfinished counts the jobs of a user that haven't finished, and their tasks.
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

// drop removes an entry from all indexes.
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

// Pod adds a new or changed pod of a Framework, and its version, which is 0 if no reader follows changes.
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

// PodGone removes a pod that is gone; its version is 0 if it isn't known.
func (x *Index) PodGone(framework string, uid types.UID, version uint64) {
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

// unpod removes a pod that needn't be checked now.
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

// Len returns how many jobs there are.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.jobs)
}

// Row returns the job of a Framework's name as the index has it now.
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

// Named reports whether the index has a Framework of that name.
func (x *Index) Named(framework string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.jobs[framework] != nil
}

// Rows returns the first n jobs after the filter's cursor that it selects, newest first; all if n is 0. It ignores the filter's own
// limit.
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
		if f.Fits(&e.row) {
			out = append(out, e.row)
		}
		if n > 0 && len(out) == n {
			break
		}
	}
	return out, nil
}

// Sorted returns all jobs that the filter selects, in its order: the live jobs for Ordered. It ignores the filter's cursor and limit.
func (x *Index) Sorted(f Filter) []Row {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	out := []Row{}
	for e := range newest(x.sources(&f), Cursor{}) {
		if f.Fits(&e.row) {
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

// sources returns the shortest orders that together contain all jobs that a filter selects.
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

// these returns the orders of some keys.
func these(by map[string]*order, keys ...string) (out []*order) {
	for _, key := range keys {
		if o := by[key]; o != nil && !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	return out
}
