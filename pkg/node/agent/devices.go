package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// device is a GPU, or a part of a GPU, that the agent publishes.
type device struct {
	gpu.GPU
	reason string // why it is sick, "" if it isn't
	since  time.Time
	// ignored is a fault that the agent ignores because of a request. An ignored fault doesn't make the device sick.
	ignored string
	xid     int // the last error of its driver
	sticky  int // the last error that only a reset or a restart clears
	xids    []gpu.Event
	// leaked means that GPU memory is in use although no process uses the GPU.
	leaked bool
	// missing means that the GPU is configured but was never found on the machine.
	missing bool
	// forPods means that ordinary pods use the device, and jobs don't.
	forPods bool
	// card is the number of the device's GPU. card equals Index if GPUs aren't split.
	card int32
	// instance is the instance that this device represents. instance is nil for a whole GPU, and for a GPU whose split differs from the configured
	// split.
	instance *gpu.Instance
	// unlike describes the current split if it differs from the configured split. Otherwise, unlike is "".
	unlike string
}

func (d *device) memoryFailed() bool {
	if d.Values[gpu.DoubleBitVolatile] > 0 {
		return true
	}
	switch d.xid {
	case 48, 95, 140: // the XIDs that indicate this
		return true
	}
	return false
}

// devices returns the machine's GPUs or their parts, sorted by number. The result includes lost GPUs. The agent closes more when a device changes or
// is added.
func (m *monitor) devices() (out []device, more <-chan struct{}) {
	cards, more := m.cards()
	if m.parts < 2 && m.mig == "" {
		return cards, more
	}
	n := max(m.parts, 1)
	for _, c := range cards {
		for k := range n {
			part := c
			part.Index = c.card*n + k
			if m.mig != "" && c.unlike == "" && int(k) < len(c.instances()) {
				part.instance = &c.MIG.Instances[k]
			}
			out = append(out, part)
		}
	}
	return out, more
}

// instances returns the instances of a GPU, sorted by their places.
func (d *device) instances() []gpu.Instance {
	if d.MIG == nil || !d.MIG.Enabled {
		return nil
	}
	return d.MIG.Instances
}

// uuid returns the UUID of the device's instance. If the device isn't an instance, uuid returns the UUID of the GPU.
func (d *device) uuid() string {
	if d.instance != nil {
		return d.instance.UUID
	}
	return d.UUID
}

// cards returns the machine's GPUs, sorted by number. The result includes lost GPUs.
func (m *monitor) cards() (out []device, more <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.slots {
		d := device{GPU: s.gpu, reason: s.reason, since: s.since, ignored: s.Ignored, sticky: s.XID, xid: s.last, xids: slices.Clone(s.xids), leaked: s.leakedBy(m.now())}
		d.Index, d.UUID, d.xid = s.Index, cmp.Or(d.UUID, s.UUID), cmp.Or(s.XID, s.last) // later errors are consequences of the one that broke it
		if s.Ignored != "" {
			d.xid = cmp.Or(s.last, s.XID)
		}
		d.Values, d.unlike = maps.Clone(d.Values), m.unlike(s)
		out = append(out, d)
	}
	out = append(out, m.missing()...)
	for i := range out {
		out[i].forPods, out[i].card = slices.Contains(m.forPods, out[i].Index), out[i].Index
	}
	slices.SortFunc(out, func(a, b device) int { return cmp.Compare(a.Index, b.Index) })
	return out, m.changed
}

// missing returns GPUs that are configured but don't exist. The agent publishes these GPUs as sick, so that the scheduler doesn't allocate missing
// GPUs to jobs. The caller holds the lock.
func (m *monitor) missing() (out []device) {
	why := fmt.Sprintf("the machine has %d GPUs, but its SKU in layout.yaml says %d", len(m.slots), m.wanted)
	if !m.seen {
		if m.silent == "" || m.now().Sub(m.silentSince) < silentFor {
			return nil // the GPUs aren't known yet
		}
		why = m.silent
	}
	taken := map[int32]bool{}
	for _, s := range m.slots {
		taken[s.Index] = true
	}
	for i := range int32(m.wanted) {
		if !taken[i] && len(m.slots)+len(out) < m.wanted {
			out = append(out, device{GPU: gpu.GPU{Index: i}, reason: why, since: m.silentSince, missing: true})
		}
	}
	return out
}

func (m *monitor) device(name string) (device, bool) {
	all, _ := m.devices()
	for _, d := range all {
		if claim.DeviceName(d.Index) == name {
			return d, true
		}
	}
	return device{}, false
}

func (m *monitor) cardOf(index int32) (device, bool) {
	all, _ := m.cards()
	i := slices.IndexFunc(all, func(d device) bool { return d.Index == index })
	if i < 0 {
		return device{}, false
	}
	return all[i], true
}
