package status

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/layout"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// tables holds all rows, their indices and the parts of the last model. It also marks the parts that must be rebuilt.
// The follower's lock guards tables.
type tables struct {
	nodes  map[string]*nodeRow
	pods   map[string]*podRow
	slices map[string]*sliceRow
	claims map[string]*claimRow
	jobs   map[string]*job.Brief
	events map[string]*eventRow

	podsOfJob    index // by Framework
	podsOfNode   index
	slicesOfNode index
	claimsOfNode index

	podsKnown, nodesKnown bool

	// layout holds the configured machines. It is nil if no configuration is known.
	layout map[string]*layoutRow
	// The last responses of the platform's services.
	queue    *schedulerapi.Queue
	waiting  job.Queue
	owners   *schedulerapi.VirtualClusters
	services []Service
	alerts   []Alert
	use      map[string]map[int32]*Use // by node and number of the card
	expiry   map[string]expiry         // the expiry of the certificates of a machine, by its name or address

	dirtyMachines, dirtyJobs sets.Set[string]
	dirtyAll                 bool // all machines
	dirtyEvents, dirtyOwners bool
	dirtyOther               bool // something else

	// The parts of the last model.
	machineList []Machine
	jobList     []*Job
	jobOf       map[string]*Job // by Framework
	eventList   []Event
	asked       []VirtualCluster // according to the scheduler
	sickInUse   map[string]int   // by virtual cluster
	ownerList   []VirtualCluster
}

type layoutRow struct {
	address, sku string
	roles        []string
	gpus         int
	model        string
	forPods      []int
}

func newLayout(l *layout.Layout) map[string]*layoutRow {
	out := map[string]*layoutRow{}
	for i := range l.MachineList {
		m := &l.MachineList[i]
		r := &layoutRow{address: m.HostIP, sku: m.SKU, roles: m.Roles, forPods: m.GPUsForPods}
		if g := l.MachineSKU[m.SKU].GPU; g != nil {
			r.gpus, r.model = g.Count, g.Type
		}
		out[m.Hostname] = r
	}
	return out
}

func newTables() *tables {
	return &tables{
		nodes: map[string]*nodeRow{}, pods: map[string]*podRow{}, slices: map[string]*sliceRow{}, claims: map[string]*claimRow{},
		jobs: map[string]*job.Brief{}, events: map[string]*eventRow{},
		podsOfJob: index{}, podsOfNode: index{}, slicesOfNode: index{}, claimsOfNode: index{},
		dirtyMachines: sets.New[string](), dirtyJobs: sets.New[string](), jobOf: map[string]*Job{},
	}
}

// index maps the key of an object to the keys of its rows.
type index map[string]map[string]struct{}

func (x index) add(of, key string) {
	if of == "" {
		return
	}
	if x[of] == nil {
		x[of] = map[string]struct{}{}
	}
	x[of][key] = struct{}{}
}

func (x index) remove(of, key string) {
	delete(x[of], key)
	if len(x[of]) == 0 {
		delete(x, of)
	}
}

// put stores a row in a table and calls changed with the old and the new row. It ignores equal rows.
func put[T any](table map[string]*T, key string, is *T, changed func(was, is *T)) {
	was := table[key]
	if was == nil && is == nil || was != nil && is != nil && reflect.DeepEqual(was, is) {
		return
	}
	if is == nil {
		delete(table, key)
	} else {
		table[key] = is
	}
	changed(was, is)
}

// into returns a function that stores a row in a table, or removes the row if is is nil. The function calls changed
// with the old and the new row.
func into[T any](table map[string]*T, changed func(key string, was, is *T)) func(key string, is *T) {
	return func(key string, is *T) {
		put(table, key, is, func(was, is *T) { changed(key, was, is) })
	}
}

func (b *tables) nodeChanged(name string, _, _ *nodeRow) { b.dirtyMachines.Insert(name) }

func (b *tables) podChanged(key string, was, is *podRow) {
	if was != nil {
		b.podsOfJob.remove(was.job, key)
		b.podsOfNode.remove(was.node, key)
		b.touch(was)
	}
	if is != nil {
		b.podsOfJob.add(is.job, key)
		b.podsOfNode.add(is.node, key)
		b.touch(is)
	}
}

func (b *tables) touch(p *podRow) {
	if p.node != "" {
		b.dirtyMachines.Insert(p.node)
	}
	if p.job != "" {
		b.dirtyJobs.Insert(p.job)
	}
}

func (b *tables) sliceChanged(key string, was, is *sliceRow) {
	if was != nil {
		b.slicesOfNode.remove(was.node, key)
		b.dirtyMachines.Insert(was.node)
	}
	if is != nil {
		b.slicesOfNode.add(is.node, key)
		b.dirtyMachines.Insert(is.node)
	}
}

func (b *tables) claimChanged(key string, was, is *claimRow) {
	if was != nil {
		b.claimsOfNode.remove(was.node, key)
		b.dirtyMachines.Insert(was.node)
	}
	if is != nil {
		b.claimsOfNode.add(is.node, key)
		b.dirtyMachines.Insert(is.node)
	}
}

func (b *tables) jobChanged(key string, was, is *job.Brief) {
	b.dirtyJobs.Insert(key)
	// Models show the owner of a GPU by the name of the job. The owner must be rebuilt when the job is created or
	// removed.
	if was == nil || is == nil || was.Job.UID != is.Job.UID {
		for pod := range b.podsOfJob[key] {
			if node := b.pods[pod].node; node != "" {
				b.dirtyMachines.Insert(node)
			}
		}
		b.dirtyEvents = true
		b.dirtyOwners = true // gangs in the queue are named by it
	}
}

func (b *tables) eventChanged(string, *eventRow, *eventRow) { b.dirtyEvents = true }

// maxEventRows is the maximum number of stored events. Older events are dropped.
const maxEventRows = 2 * MaxEvents

// trimEvents drops events that are too old to be shown, and returns their keys.
func trimEvents(events map[string]*eventRow) []string {
	keys := slices.SortedFunc(maps.Keys(events), func(x, y string) int { return events[y].At.Compare(events[x].At) })
	keys = keys[min(len(keys), MaxEvents):]
	for _, key := range keys {
		delete(events, key)
	}
	return keys
}

// newest selects the events to show while a long list of events is being read.
type newest struct {
	mu    sync.Mutex
	times map[string]time.Time // by UID: a recurring event counts once
	floor time.Time            // more than enough events are newer
}

// has reports whether an event is recent enough to be shown, and records the event.
func (n *newest) has(uid string, at time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.Before(n.floor) {
		return false
	}
	if n.times == nil {
		n.times = map[string]time.Time{}
	}
	if n.times[uid] = at; len(n.times) > maxEventRows {
		order := slices.SortedFunc(maps.Keys(n.times), func(x, y string) int { return n.times[y].Compare(n.times[x]) })
		n.floor = n.times[order[MaxEvents-1]]
		for _, old := range order[MaxEvents:] {
			delete(n.times, old)
		}
	}
	return true
}

// reset drops all recorded times. Later events may be older if the API server was restored from a backup.
func (n *newest) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.times, n.floor = nil, time.Time{}
}

// knowPods records that the list of pods is complete. After that, the states of jobs are more exact.
func (b *tables) knowPods() {
	if !b.podsKnown {
		b.podsKnown = true
		b.dirtyJobs.Insert(slices.Collect(maps.Keys(b.jobs))...)
	}
}

// knowNodes records that the list of nodes is complete. After that, configured machines that aren't in the list are
// outside the cluster.
func (b *tables) knowNodes() {
	if !b.nodesKnown {
		b.nodesKnown, b.dirtyAll = true, true
	}
}

// setQueue stores the scheduler's responses. It rebuilds only jobs whose position in the queue changed.
func (b *tables) setQueue(queue *schedulerapi.Queue, owners *schedulerapi.VirtualClusters) {
	was, is := b.waiting, job.NewQueue(queue)
	if queue == nil {
		is = nil
	}
	for object, gang := range is {
		if old, ok := was[object]; !ok || old != gang {
			b.dirtyJobs.Insert(object)
		}
	}
	for object := range was {
		if _, ok := is[object]; !ok {
			b.dirtyJobs.Insert(object)
		}
	}
	b.queue, b.waiting, b.owners, b.dirtyOwners = queue, is, owners, true
}

func (b *tables) setLayout(l map[string]*layoutRow) {
	if !reflect.DeepEqual(b.layout, l) {
		b.layout, b.dirtyAll = l, true
	}
}

// setUse replaces the measurements of GPUs and the expiry of certificates. It removes the old measurements of machines
// without new measurements.
func (b *tables) setUse(use map[string]map[int32]*Use, expires map[string]expiry) {
	for node := range b.use {
		b.dirtyMachines.Insert(node)
	}
	for node := range use {
		b.dirtyMachines.Insert(node)
	}
	if !maps.Equal(b.expiry, expires) {
		b.dirtyAll = true
	}
	b.use, b.expiry = use, expires
}

func platformPods(namespaces sets.Set[string], was, is *podRow) bool {
	of := func(p *podRow) bool { return p != nil && namespaces.Has(p.namespace) }
	if !of(was) && !of(is) {
		return false
	}
	return was == nil || is == nil || was.shown != is.shown
}

// titleOf returns the title of a Framework's job, or other if the title is unknown.
func (b *tables) titleOf(object, other string) string {
	brief := b.jobs[object]
	if brief == nil || strings.HasSuffix(brief.Title(), "/"+object) {
		return other
	}
	return brief.Title()
}
