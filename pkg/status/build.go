package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// many is the number of changes above which a list is rebuilt. Smaller numbers of changes are applied one by one.
const many = 256

// refresh rebuilds the parts of the model that have changed. Unchanged parts share their memory with earlier models.
func (b *tables) refresh() {
	b.refreshMachines()
	b.refreshJobs()
	b.refreshOwners()
	if b.dirtyEvents {
		b.refreshEvents()
	}
	b.dirtyOwners, b.dirtyEvents, b.dirtyOther, b.dirtyAll = false, false, false, false
}

// dirty reports whether refresh would change anything.
func (b *tables) dirty() bool {
	return b.dirtyAll || b.dirtyEvents || b.dirtyOwners || b.dirtyOther || len(b.dirtyMachines) > 0 || len(b.dirtyJobs) > 0
}

func (b *tables) refreshMachines() {
	if b.dirtyAll {
		b.dirtyMachines.Insert(slices.Collect(maps.Keys(b.nodes))...)
		b.dirtyMachines.Insert(slices.Collect(maps.Keys(b.layout))...)
		for i := range b.machineList {
			b.dirtyMachines.Insert(b.machineList[i].Name)
		}
	}
	if len(b.dirtyMachines) == 0 {
		return
	}
	byName := func(m Machine, name string) int { return strings.Compare(m.Name, name) }
	list := slices.Clone(b.machineList)
	var fresh []Machine
	for name := range b.dirtyMachines {
		at, there := slices.BinarySearchFunc(list, name, byName)
		m, exists := b.machine(name)
		switch {
		case exists && there:
			list[at] = m
		case exists:
			fresh = append(fresh, m)
		case there:
			list = slices.Delete(list, at, at+1)
		}
	}
	if len(fresh) > 0 {
		list = append(list, fresh...)
		slices.SortFunc(list, func(x, y Machine) int { return strings.Compare(x.Name, y.Name) })
	}
	b.machineList = list
	b.dirtyMachines.Clear()
}

// machine merges the node and the configured machine with the same name. It returns false if neither exists.
func (b *tables) machine(name string) (Machine, bool) {
	n, l := b.nodes[name], b.layout[name]
	if n == nil && l == nil {
		return Machine{}, false
	}
	m := Machine{Name: name}
	if l != nil {
		m.Address, m.Roles, m.SKU = l.address, l.roles, l.sku
	}
	if n == nil && !b.nodesKnown {
		m.State, m.Message, m.GPUs = MachineUnknown, "its node was not read", b.gpus(name, nil, l)
		return m, true
	}
	if n == nil {
		m.State, m.Message = MachineOutside, "not in the cluster"
		m.Hint = "paictl cluster up adds it to the cluster; paictl node remove " + name + " removes it from the layout"
		m.GPUs = b.gpus(name, nil, l)
		return m, true
	}
	m.State, m.Since, m.Message, m.Cordoned, m.Pressure = MachineNotReady, n.since, n.message, n.cordoned, n.pressure
	m.CordonedBy, m.CordonReason = n.cordonedBy, n.cordonReason
	m.Kubelet, m.Runtime, m.Kernel, m.OS = n.kubelet, n.runtime, n.kernel, n.os
	m.Address = cmp.Or(m.Address, n.address)
	if l == nil {
		m.Roles = n.roles
	}
	switch n.ready {
	case corev1.ConditionTrue:
		m.State = MachineReady
	case corev1.ConditionUnknown:
		m.State, m.Hint = MachineUnknown, "see whether it runs and is reachable: paictl cluster status -p DIR"
	default:
		m.Hint = "see what runs on it: paictl cluster status -p DIR"
	}
	if b.layout != nil && l == nil {
		m.Message = "not in layout.yaml"
		if n.ready == corev1.ConditionTrue {
			m.State = MachineUnlisted
		} else {
			m.Message += ", and not Ready"
		}
		m.Hint = fmt.Sprintf("keep it with: paictl node add %s=%s; or list it in layout.yaml, then remove it with: paictl node remove %s", name, cmp.Or(m.Address, "ADDRESS"), name)
	}
	m.CPU.Total, m.Memory.Total = n.cpu, n.memory
	for key := range b.podsOfNode[name] {
		if p := b.pods[key]; !p.ended {
			m.Pods++
			m.CPU.Used += p.cpu
			m.Memory.Used += p.memory
		}
	}
	for key := range b.slicesOfNode[name] {
		m.Driver = cmp.Or(m.Driver, b.slices[key].driver)
	}
	m.Certificates = b.expires(name, m.Address)
	m.GPUs = b.gpus(name, n, l)
	return m, true
}

// expires returns when the first certificate of a machine expires, or zero if that is unknown.
func (b *tables) expires(name, address string) time.Time {
	first := time.Time(b.expiry[name])
	if at := time.Time(b.expiry[address]); address != "" && !at.IsZero() && (first.IsZero() || at.Before(first)) {
		first = at
	}
	return first
}

// gpus returns the GPUs that a machine's agent publishes and reports. If the agent reports no GPUs, it returns the
// configured GPUs.
func (b *tables) gpus(name string, n *nodeRow, l *layoutRow) []GPU {
	found := map[int32]*GPU{}
	at := func(index int32) *GPU {
		if found[index] == nil {
			found[index] = &GPU{Index: index, Health: GPUUnknown}
		}
		return found[index]
	}
	published := map[int32]bool{}
	for key := range b.slicesOfNode[name] {
		for i := range b.slices[key].devices {
			d := &b.slices[key].devices[i]
			g := at(d.index)
			published[d.index] = true
			g.Model, g.UUID, g.Memory, g.ForPods, g.Simulated, g.Health = d.model, d.uuid, d.memory, d.forPods, d.simulated, GPUHealthy
			if d.sick {
				g.Health = GPUSick
			}
		}
	}
	parts := int32(1)
	if n != nil && n.reported {
		parts = n.parts
		for i := range n.devices {
			told(at(n.devices[i].Index), &n.devices[i], len(published) > 0 && !published[n.devices[i].Index])
		}
	}
	if l != nil && len(found) == 0 {
		for i := range int32(l.gpus) {
			g := at(i)
			g.Model, g.ForPods = l.model, slices.Contains(l.forPods, int(i))
		}
	}
	if len(found) == 0 {
		return nil
	}
	silent := n == nil || n.ready == corev1.ConditionUnknown
	for index, g := range found {
		if silent && g.Health == GPUHealthy {
			g.Health = GPUUnknown
		}
		g.Use = b.use[name][index/parts]
	}
	b.own(name, found)
	out := make([]GPU, 0, len(found))
	for _, index := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[index])
	}
	return out
}

// told merges the agent's report about a GPU into g. missing means that the agent publishes other GPUs but not this
// GPU.
func told(g *GPU, d *schedulerapi.Device, missing bool) {
	g.Model, g.ForPods = cmp.Or(g.Model, d.Model), g.ForPods || d.ForPods
	switch {
	case !d.Healthy && missing:
		g.Health, g.Reason = GPUMissing, clip(d.Reason)
	case !d.Healthy:
		g.Health, g.Reason = GPUSick, clip(d.Reason)
	case d.Ignored != "":
		g.Health, g.Reason = GPUIgnored, clip(d.Ignored)
	case g.Health == GPUUnknown:
		g.Health = GPUHealthy
	}
}

// own sets the owners of a machine's GPUs. The owners come from claims, and from the annotations of pods without
// claims.
func (b *tables) own(name string, found map[int32]*GPU) {
	for key := range b.claimsOfNode[name] {
		c := b.claims[key]
		owner := b.owner(c.pod, c.uid)
		for _, index := range c.indices {
			if g := found[index]; g != nil {
				g.Owner = owner
			}
		}
	}
	for key := range b.podsOfNode[name] {
		p := b.pods[key]
		if p.ended {
			continue
		}
		for _, index := range p.indices {
			if g := found[index]; g != nil && g.Owner == nil {
				g.Owner = b.owner(key, p.uid)
			}
		}
	}
}

// owner returns the pod with a name as the owner of GPUs. It compares the UIDs, because a newer pod may have the same
// name.
func (b *tables) owner(pod, uid string) *Owner {
	o := &Owner{Pod: pod}
	p := b.pods[pod]
	if p == nil || p.uid != uid || p.job == "" {
		return o
	}
	o.Task = p.task
	if brief := b.jobs[p.job]; brief != nil {
		o.Job, o.JobUID, o.User, o.VirtualCluster = brief.Title(), brief.Job.UID, brief.Job.User, brief.Job.VirtualCluster
		o.Opportunistic = brief.Job.Priority == v1.PriorityOpportunistic
	}
	return o
}

func newestFirst(a, b *Job) int {
	return cmp.Or(b.Submitted.Compare(a.Submitted), strings.Compare(b.UID, a.UID))
}

func (b *tables) refreshJobs() {
	if len(b.dirtyJobs) == 0 {
		return
	}
	list := slices.Clone(b.jobList)
	whole := len(b.dirtyJobs) > many
	for name := range b.dirtyJobs {
		was, is := b.jobOf[name], b.job(name)
		if is == nil {
			delete(b.jobOf, name)
		} else {
			b.jobOf[name] = is
		}
		if whole {
			continue
		}
		list = moved(list, was, is)
	}
	if whole {
		list = slices.SortedFunc(maps.Values(b.jobOf), newestFirst)
	}
	b.jobList = list
	b.dirtyJobs.Clear()
}

// moved replaces a job in list with its new version, or removes the job if the new version is nil. It changes list in
// place.
func moved(list []*Job, was, is *Job) []*Job {
	if was != nil {
		if at, found := slices.BinarySearchFunc(list, was, newestFirst); found {
			if is != nil && newestFirst(was, is) == 0 {
				list[at] = is
				return list
			}
			list = slices.Delete(list, at, at+1)
		}
	}
	if is != nil {
		at, _ := slices.BinarySearchFunc(list, is, newestFirst)
		list = slices.Insert(list, at, is)
	}
	return list
}

// job returns the job of a Framework, or nil if the job doesn't exist.
func (b *tables) job(name string) *Job {
	brief := b.jobs[name]
	if brief == nil {
		return nil
	}
	var starts []job.Start
	if b.podsKnown {
		starts = []job.Start{}
	}
	nodes, held := map[string]bool{}, ""
	for key := range b.podsOfJob[name] {
		p := b.pods[key]
		if !p.start.Begun {
			starts = append(starts, p.start)
			if p.held != "" && (held == "" || p.task+": "+p.held < held) {
				held = p.task + ": " + p.held
			}
		}
		if p.node != "" {
			nodes[p.node] = true
		}
	}
	gang, queued := b.waiting[name]
	j := &Job{Row: brief.Row(brief.State(starts, queued, gang.PositionInVC)), Nodes: slices.Sorted(maps.Keys(nodes))}
	switch phase := job.Phase(j.State); {
	case phase.Done():
		j.Why = brief.Failure()
	case queued && gang.Reason != "" && phase != job.Running && phase != job.Starting: // the queue is older than the pods
		j.Why = clip(gang.Reason)
	case phase == job.Running, phase == job.Stopping, phase == job.Deleting:
	default:
		j.Why = clip(cmp.Or(brief.Message, held))
	}
	return j
}

// refreshOwners rebuilds the virtual clusters if the scheduler's report or the number of sick GPUs has changed.
func (b *tables) refreshOwners() {
	if b.dirtyOwners {
		b.asked = b.virtualClusters()
	}
	sick := sickInUse(b.machineList)
	if !b.dirtyOwners && maps.Equal(sick, b.sickInUse) {
		return
	}
	b.sickInUse, b.ownerList = sick, slices.Clone(b.asked)
	for i := range b.ownerList {
		b.ownerList[i].Bad += sick[b.ownerList[i].Name]
	}
}

// sickInUse counts the sick GPUs of guaranteed jobs by virtual cluster. The scheduler counts such a GPU as used. It
// counts the GPU as bad only after the job has finished.
func sickInUse(machines []Machine) map[string]int {
	out := map[string]int{}
	for i := range machines {
		for k := range machines[i].GPUs {
			g := &machines[i].GPUs[k]
			if o := g.Owner; o != nil && !o.Opportunistic && o.VirtualCluster != "" && (g.Health == GPUSick || g.Health == GPUMissing) {
				out[o.VirtualCluster]++
			}
		}
	}
	return out
}

func (b *tables) virtualClusters() []VirtualCluster {
	out := []VirtualCluster{}
	if b.owners == nil {
		return out
	}
	for i, list := range [][]schedulerapi.VirtualCluster{b.owners.Items, b.owners.Deleted} {
		for k := range list {
			out = append(out, VirtualCluster{VirtualCluster: list[k], Deleted: i == 1})
		}
	}
	if b.queue != nil {
		for _, gang := range job.Gangs(b.queue, b.titleOf) {
			if at := slices.IndexFunc(out, func(v VirtualCluster) bool { return v.Name == gang.VC }); at >= 0 {
				out[at].Queue = append(out[at].Queue, gang)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y VirtualCluster) int { return strings.Compare(x.Name, y.Name) })
	return out
}

func (b *tables) refreshEvents() {
	if len(b.events) > maxEventRows {
		trimEvents(b.events)
	}
	out := make([]Event, 0, len(b.events))
	for _, r := range b.events {
		e := r.Event
		if brief := b.jobs[r.job]; brief != nil {
			e.Job = brief.Title()
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(x, y Event) int {
		return cmp.Or(y.At.Compare(x.At), strings.Compare(x.Object, y.Object), strings.Compare(x.Reason, y.Reason), strings.Compare(x.Message, y.Message))
	})
	b.eventList = out[:min(len(out), MaxEvents):min(len(out), MaxEvents)]
}
