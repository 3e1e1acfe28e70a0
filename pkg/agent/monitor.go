package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/agent/gpu"
	"github.com/openpai/paictl/pkg/agent/replace"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// monitor knows the GPUs of the machine: those that are there, those that were, and what is wrong with them. Its methods may be called at
// the same time.
type monitor struct {
	// file keeps what outlives the agent: the numbers of GPUs, since one that is lost must not give its own to the next, and errors that only a
	// reset ends, which the driver tells once.
	file string
	// boot is the machine's present start: one that restarts has reset its GPUs.
	boot string
	// wanted is how many GPUs the configuration says that there are; 0 if it says nothing.
	wanted int
	// forPods are the numbers of those that ordinary pods get.
	forPods []int32
	// parts is how many jobs share a GPU: each is a device for that many.
	parts int32
	log   *slog.Logger
	now   func() time.Time

	mu sync.Mutex
	// slots are by PCI address: NVML numbers GPUs in that order, and a card that takes another's slot takes its number.
	slots        map[string]*slot
	driver, cuda string
	// silent says why nothing is known, "" if it is; since then.
	silent      string
	silentSince time.Time
	news        bool   // a GPU came, or an error that makes none sick, and no one was told
	seen        bool   // a report has come
	missed      string // how many of the wanted are missing, and why
	// changed is closed when a GPU comes, becomes sick or well, or reports an error.
	changed chan struct{}
}

// slot is a place where a GPU is, or was.
type slot struct {
	Index int32  `json:"index"`
	UUID  string `json:"uuid"`
	// XID is the error that only a reset ends, 0 if it has none, At when it happened and Boot in which start of the machine.
	XID  int       `json:"xid,omitempty"`
	At   time.Time `json:"at,omitzero"`
	Boot string    `json:"boot,omitempty"`
	// Ignored is what was wrong with it when someone ordered to use it all the same.
	Ignored string `json:"ignored,omitempty"`
	// Failures is how many errors couldn't be corrected then: more of them are worse.
	Failures float64 `json:"failures,omitempty"`
	// Seen is the machine's start in which it was there last.
	Seen      string `json:"seen,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`

	gpu gpu.GPU // as it was seen last
	// last is the last error that the driver told, sick or not, since the agent started.
	last int
	// xids are all that it told, counted from the first.
	xids   []gpu.Event
	reason string // why it is sick
	since  time.Time
}

// openMonitor reads what earlier agents knew.
func openMonitor(file, boot string, log *slog.Logger, now func() time.Time) (*monitor, error) {
	m := &monitor{file: file, boot: boot, log: log, now: now, slots: map[string]*slot{}, changed: make(chan struct{})}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &m.slots); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it; the GPUs are numbered again from the start then", file, err)
	}
	if m.slots == nil {
		m.slots = map[string]*slot{}
	}
	for bus, s := range m.slots {
		if s == nil {
			delete(m.slots, bus)
			continue
		}
		if s.Boot != boot {
			s.XID, s.At, s.Boot = 0, time.Time{}, "" // the start has reset it
		}
	}
	return m, nil
}

// see takes note of a report.
func (m *monitor) see(r *gpu.Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	if m.driver != r.Driver {
		m.news = true
	}
	m.driver, m.cuda, m.seen, m.silent = r.Driver, r.CUDA, true, ""
	there := map[string]bool{}
	present := placed(r)
	m.settle(present)
	for _, g := range present {
		there[g.Bus] = true
		s := m.slots[g.Bus]
		if s == nil && len(m.slots) == mostGPUs {
			continue
		}
		if s == nil {
			s = &slot{Index: m.number(g.Index), UUID: g.UUID}
			m.slots[g.Bus] = s
			m.news = true
			m.log.Info("a GPU was found", "gpu", s.Index, "bus", g.Bus, "model", g.Model, "uuid", g.UUID)
		}
		if s.UUID == "" {
			s.UUID = g.UUID
		}
		if g.UUID != "" && s.UUID != g.UUID {
			m.log.Info("a GPU was exchanged", "gpu", s.Index, "bus", g.Bus, "uuid", g.UUID, "was", s.UUID)
			*s, m.news = slot{Index: s.Index, UUID: g.UUID}, true
		}
		g.Index, s.Seen, s.Simulated = s.Index, m.boot, g.Simulated
		if g.Lost && g.UUID == "" {
			was := s.gpu
			was.Lost = true
			g = was
		}
		for _, name := range []string{gpu.DoubleBitVolatile, gpu.RowRemapFailed, gpu.OtherUncorrectable} {
			// What couldn't be read this time is as before.
			if was, ok := s.gpu.Values[name]; ok && g.Values != nil {
				if _, read := g.Values[name]; !read {
					g.Values[name] = was
				}
			}
		}
		s.gpu = g
	}
	for bus, s := range m.slots {
		if !there[bus] {
			s.gpu.Lost = true
		}
	}
	for _, e := range r.Events {
		m.event(e)
	}
	m.judge()
	m.store(before)
}

// placed are the GPUs of a report that have a place, each once: a lost one may say nothing.
func placed(r *gpu.Report) (out []gpu.GPU) {
	seen := map[string]bool{}
	for _, g := range r.GPUs {
		g.Bus = cmp.Or(g.Bus, g.UUID) // a library may not tell it
		if g.Bus != "" && !seen[g.Bus] {
			seen[g.Bus] = true
			out = append(out, g)
		}
	}
	return out
}

// realRoot is a folder with the files of the machine, "" where no GPU of it is real.
func (m *monitor) realRoot(root string) string {
	if m.wanted == 0 {
		return ""
	}
	return root
}

// settle brings what was known to where GPUs are now, before new ones get numbers. Cards that change places among themselves take each other's
// numbers, as those tell the place. Where there are new places, since a card that was built in has changed the addresses of others, numbers
// go with the cards.
func (m *monitor) settle(present []gpu.GPU) {
	at, there, simulated, renumbered := map[string]string{}, map[string]bool{}, 0, false
	for _, g := range present {
		at[g.UUID], there[g.Bus] = g.Bus, true
		if g.Simulated {
			simulated++
		}
		renumbered = renumbered || m.slots[g.Bus] == nil
	}
	delete(at, "")
	settled, rest := map[string]*slot{}, []string{}
	for _, bus := range slices.Sorted(maps.Keys(m.slots)) {
		s := m.slots[bus]
		switch now, known := at[s.UUID]; {
		case len(present) > 0 && s.Seen != "" && (s.Simulated && simulated == 0 || !s.Simulated && simulated == len(present)):
			m.forget(bus, s, "simulated ones were replaced by real ones, or the reverse")
		case renumbered && known && settled[now] == nil:
			if settled[now] = s; now != bus {
				m.log.Info("a GPU has another address", "gpu", s.Index, "bus", now, "was", bus)
				m.news = true
			}
		default:
			rest = append(rest, bus)
		}
	}
	for _, bus := range rest {
		s, taken := m.slots[bus], settled[bus] != nil
		switch {
		case there[bus] && !taken:
			settled[bus] = s
		case s.Seen != m.boot && m.wanted > 0 && len(present) >= m.wanted:
			m.forget(bus, s, "the machine has had all of its GPUs without it since its start")
		case !taken:
			settled[bus] = s
		default:
			settled["was at "+bus] = s
		}
	}
	m.slots = settled
}

func (m *monitor) forget(bus string, s *slot, why string) {
	m.log.Info("a GPU is forgotten", "gpu", s.Index, "bus", bus, "uuid", s.UUID, "why", why)
	m.news = true
}

// number is the number of a GPU that wasn't known: NVML's, or the first that no other has.
func (m *monitor) number(wanted int32) int32 {
	taken := map[int32]bool{}
	for _, s := range m.slots {
		taken[s.Index] = true
	}
	if wanted >= 0 && !taken[wanted] {
		return wanted
	}
	for i := int32(0); ; i++ {
		if !taken[i] {
			return i
		}
	}
}

// mostGPUs is far more than any machine has.
const mostGPUs = 1024

// mostXIDs is how many errors of a GPU are kept: one that breaks may report thousands.
const mostXIDs = 32

func (m *monitor) event(e gpu.Event) {
	s := m.slots[e.Bus]
	if s == nil {
		m.log.Warn("an error of an unknown GPU", "bus", e.Bus, "xid", e.XID)
		return
	}
	if e.XID == 0 {
		if s.XID == 0 && s.last == 0 {
			return
		}
		m.log.Info("a GPU was reset", "gpu", s.Index)
		s.XID, s.At, s.Boot, s.last = 0, time.Time{}, "", 0
		return
	}
	x := gpu.FindXID(e.XID)
	m.log.Warn("a GPU reports an error", "gpu", s.Index, "error", x.String())
	s.last, m.news = e.XID, true // for its container
	s.xids = append(s.xids[max(0, len(s.xids)-mostXIDs+1):], e)
	if x.Sick() && (s.XID == 0 || x.Action == gpu.Restart || s.Ignored != "") {
		s.XID, s.At, s.Boot, s.Ignored = e.XID, e.At, m.boot, "" // what is ignored is what there was
	}
}

// silentFor is how long nothing may be known of GPUs before that makes them sick: the program that looks at them may have to start again.
const silentFor = 15 * time.Second

// tick looks whether time alone has changed something.
func (m *monitor) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judge()
}

// unseen takes note that nothing can be known of the GPUs at present.
func (m *monitor) unseen(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.silent == "" {
		m.silentSince = m.now()
	}
	m.silent = why.Error()
	m.log.Warn("the GPUs can't be looked at", "err", why)
	m.judge()
}

// judge finds out who is sick.
func (m *monitor) judge() {
	changed := m.news
	m.news = false
	missed := ""
	if missing := m.missing(); len(missing) > 0 {
		missed = fmt.Sprintf("%d %s", len(missing), missing[0].reason)
	}
	if missed != m.missed {
		changed, m.missed = true, missed
	}
	for _, s := range m.slots {
		reason, since := m.sickness(s)
		if reason == "" && s.Ignored != "" && m.seen && m.silent == "" && len(m.reasons(s)) == 0 {
			s.Ignored = "" // it is over
		}
		if reason == s.reason {
			continue
		}
		changed = true
		if s.reason, s.since = reason, since; reason != "" {
			m.log.Warn("a GPU is sick", "gpu", s.Index, "reason", reason)
		} else {
			m.log.Info("a GPU is well", "gpu", s.Index)
		}
	}
	if changed {
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// What is wrong where errors couldn't be corrected, of which there may be more later.
const (
	memoryFailed = "its memory has errors that can't be corrected; reset it, or restart the machine"
	othersFailed = "it had errors that can't be corrected (RAS); reset it, or restart the machine"
)

// sickness says what is wrong with a GPU besides what is ignored by order, "" if nothing is, and since when.
func (m *monitor) sickness(s *slot) (string, time.Time) {
	since := s.since
	if s.reason == "" {
		since = m.now()
	}
	for _, reason := range m.reasons(s) {
		switch {
		case reason == s.Ignored && (failures(s) <= s.Failures || reason != memoryFailed && reason != othersFailed):
			continue
		case s.XID != 0 && reason == gpu.FindXID(s.XID).String():
			since = s.At
		case reason == m.silent:
			since = m.silentSince
		}
		return reason, since
	}
	if m.silent != "" && m.now().Sub(m.silentSince) < silentFor {
		return s.reason, s.since // it isn't known yet
	}
	return "", time.Time{}
}

// reasons are all that is wrong with a GPU, the worst first.
func (m *monitor) reasons(s *slot) (out []string) {
	if s.XID != 0 {
		out = append(out, gpu.FindXID(s.XID).String())
	}
	if m.silent != "" {
		if m.now().Sub(m.silentSince) >= silentFor {
			out = append(out, m.silent)
		}
		return out // what was read last may be over
	}
	v := s.gpu.Values
	for _, is := range []struct {
		wrong bool
		text  string
	}{
		{s.gpu.Lost, "it is lost: it doesn't answer; restart the machine"},
		{s.gpu.Unusable != "", s.gpu.Unusable},
		{v[gpu.DoubleBitVolatile] > 0, memoryFailed},
		{v[gpu.RowRemapFailed] > 0, "it can't replace damaged memory any more; exchange it"},
		{v[gpu.OtherUncorrectable] > 0, othersFailed},
	} {
		if is.wrong {
			out = append(out, is.text)
		}
	}
	return out
}

// failures is how many errors of its memory and its other parts couldn't be corrected.
func failures(s *slot) float64 {
	return s.gpu.Values[gpu.DoubleBitVolatile] + s.gpu.Values[gpu.OtherUncorrectable]
}

// ignore has a GPU used again though something is wrong with it, until something else is.
// Where wrong is given it has to be just that, since an order may come late.
func (m *monitor) ignore(index int32, wrong string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	s := m.slotOf(index)
	switch {
	case s == nil:
		return "", fmt.Errorf("the machine has no GPU %d", index)
	case s.reason == "" && s.Ignored != "":
		return "ignored already: " + s.Ignored, nil
	case s.reason == "":
		return "", errors.New("nothing is wrong with it")
	case s.gpu.Lost || m.silent != "":
		return "", fmt.Errorf("it can't be used: %s", s.reason)
	case wrong != "" && wrong != s.reason:
		return "", fmt.Errorf("something else is wrong with it by now: %s", s.reason)
	}
	s.Ignored, s.Failures, m.news = s.reason, failures(s), true
	m.log.Warn("what is wrong with a GPU is ignored", "gpu", s.Index, "reason", s.Ignored)
	m.judge()
	m.store(before)
	return "it gets jobs again, though: " + s.Ignored, nil
}

// heed ends ignore.
func (m *monitor) heed(index int32) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	s := m.slotOf(index)
	if s == nil || s.Ignored == "" {
		return "", errors.New("nothing of it is ignored")
	}
	was := s.Ignored
	s.Ignored, m.news = "", true
	m.judge()
	m.store(before)
	return "it gets no more jobs: " + was, nil
}

// wasReset takes note that a GPU was reset: errors that only a reset ends are over. What still is wrong with it the next report tells.
func (m *monitor) wasReset(index int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	if s := m.slotOf(index); s != nil {
		m.log.Info("a GPU was reset", "gpu", s.Index)
		s.XID, s.At, s.Boot, s.last, s.Ignored = 0, time.Time{}, "", 0, ""
		delete(s.gpu.Values, gpu.DoubleBitVolatile) // counted since the last one
		m.news = true
		m.judge()
	}
	m.store(before)
}

// slotOf returns the slot of a GPU's number, nil if there is none. Its caller holds the lock.
func (m *monitor) slotOf(index int32) *slot {
	for _, s := range m.slots {
		if s.Index == index {
			return s
		}
	}
	return nil
}

// stored is what is kept in the file.
func (m *monitor) stored() string {
	data, err := json.Marshal(m.slots)
	if err != nil {
		panic(fmt.Sprintf("write slots as JSON: %v", err)) // they are plain
	}
	return string(data)
}

// store writes the file if it isn't as before. Where it can't, the agent goes on: what isn't kept is known until it ends.
func (m *monitor) store(before string) {
	now := m.stored()
	if now == before {
		return
	}
	if err := replace.Durably(m.file, []byte(now), 0o600); err != nil {
		m.log.Error("what is known of the GPUs can't be kept", "file", m.file, "err", err)
	}
}

// device is a GPU as others see it.
type device struct {
	gpu.GPU
	reason string // why it is sick, "" if it isn't
	since  time.Time
	// ignored is what is wrong with it, and by order makes it not sick.
	ignored string
	xid     int // the last error of its driver
	sticky  int // the one that only a reset or a restart ends
	xids    []gpu.Event
	// missing: the configuration says that the machine has it, and it was never seen.
	missing bool
	// forPods: ordinary pods get it, and no job.
	forPods bool
	// card is the number of the GPU of which it is a part; Index, where each is one part.
	card int32
}

// memoryFailed reports whether its memory had errors that couldn't be corrected.
func (d *device) memoryFailed() bool {
	if d.Values[gpu.DoubleBitVolatile] > 0 {
		return true
	}
	switch d.xid {
	case 48, 95, 140: // those of XIDs that say so
		return true
	}
	return false
}

// devices are what is handed out of the machine, by their numbers: its GPUs, also lost ones, or the parts of each. more is closed when there is
// news of one of them, or another comes.
func (m *monitor) devices() (out []device, more <-chan struct{}) {
	cards, more := m.cards()
	if m.parts < 2 {
		return cards, more
	}
	for _, c := range cards {
		for k := range m.parts {
			part := c
			part.Index = c.card*m.parts + k
			out = append(out, part)
		}
	}
	return out, more
}

// cards are the GPUs of the machine, also lost ones, by their numbers.
func (m *monitor) cards() (out []device, more <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.slots {
		d := device{GPU: s.gpu, reason: s.reason, since: s.since, ignored: s.Ignored, sticky: s.XID, xid: s.last, xids: slices.Clone(s.xids)}
		d.Index, d.UUID, d.xid = s.Index, cmp.Or(d.UUID, s.UUID), cmp.Or(s.last, s.XID)
		d.Values = maps.Clone(d.Values)
		out = append(out, d)
	}
	out = append(out, m.missing()...)
	for i := range out {
		out[i].forPods, out[i].card = slices.Contains(m.forPods, out[i].Index), out[i].Index
	}
	slices.SortFunc(out, func(a, b device) int { return cmp.Compare(a.Index, b.Index) })
	return out, m.changed
}

// missing are GPUs that the configuration names and that aren't there. The scheduler would give them to jobs. Its caller holds the lock.
func (m *monitor) missing() (out []device) {
	why := fmt.Sprintf("the machine has %d GPUs, and its SKU in layout.yaml %d", len(m.slots), m.wanted)
	if !m.seen {
		if m.silent == "" || m.now().Sub(m.silentSince) < silentFor {
			return nil // it isn't known yet
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

// device returns the GPU of a name.
func (m *monitor) device(name string) (device, bool) {
	all, _ := m.devices()
	for _, d := range all {
		if claim.DeviceName(d.Index) == name {
			return d, true
		}
	}
	return device{}, false
}

// cardOf returns the GPU of a number.
func (m *monitor) cardOf(index int32) (device, bool) {
	all, _ := m.cards()
	i := slices.IndexFunc(all, func(d device) bool { return d.Index == index })
	if i < 0 {
		return device{}, false
	}
	return all[i], true
}

// versions are those of the driver and of CUDA.
func (m *monitor) versions() (driver, cuda string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.driver, m.cuda
}

// first waits for the first report. On a machine whose GPUs are known from earlier the agent goes on without: pods that have some can end.
func (m *monitor) first(ctx context.Context, limit time.Duration) error {
	const every = 20 * time.Millisecond
	for end := time.Now().Add(limit); ; {
		seen, why := m.answered()
		known, _ := m.devices()
		switch {
		case seen:
			return nil
		case time.Now().Before(end):
		case len(known) > 0 || m.wanted > 0:
			m.log.WarnContext(ctx, "the GPUs can't be used; those that are known are of earlier", "err", why)
			return nil
		default:
			return fmt.Errorf("find the GPUs of the machine: %s", cmp.Or(why, "the driver doesn't answer"))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

// answered reports whether a report has come, and if none has, why.
func (m *monitor) answered() (bool, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen, m.silent
}

// bootID names the present start of a machine.
func bootID(proc string) string {
	data, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
