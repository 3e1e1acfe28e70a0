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

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/replace"
)

// monitor tracks the machine's current and former GPUs and their faults. All methods can be called concurrently.
type monitor struct {
	// file stores the state that survives a restart of the agent. file contains the numbers of GPUs, because the number of a lost GPU must not be
	// reused. file also contains errors that only a reset clears, because the driver reports such errors only once.
	file string
	// boot is the machine's current boot ID. A changed boot ID means that a restart of the machine has reset the GPUs.
	boot string
	// wanted is the configured number of GPUs, or 0 if no number is configured.
	wanted int
	// forPods are the numbers of the GPUs for ordinary pods.
	forPods []int32
	// parts is the number of jobs that share a GPU, or the number of a GPU's instances. The agent publishes this number of devices for each GPU.
	parts int32
	// claimed reports whether a claim uses a GPU or a part of the GPU. claimed is nil until the claims are known.
	claimed func(card int32) bool
	// mig is the configured profile of GPU instances, or "" if jobs share a GPU by taking turns.
	mig string
	log *slog.Logger
	now func() time.Time

	mu sync.Mutex
	// slots holds the PCI slots by address. NVML numbers GPUs in the order of addresses. A replacement card gets the number of the previous card in the
	// slot.
	slots        map[string]*slot
	driver, cuda string
	// silent is the reason why the state of the GPUs is unknown, or "". silentSince is the time when the state became unknown.
	silent      string
	silentSince time.Time
	news        bool   // a GPU was added, or had an error that didn't make it sick, and changed isn't closed yet
	seen        bool   // a report has arrived
	reports     int    // how many have arrived
	missed      string // the number of missing GPUs, and why
	// changed is closed when a GPU is added, becomes sick or healthy, or reports an error.
	changed chan struct{}
}

// slot is a PCI slot that contains or contained a GPU.
type slot struct {
	Index int32  `json:"index"`
	UUID  string `json:"uuid"`
	// XID is an error that only a reset clears, or 0. At is the time of the error. Boot is the boot ID of the machine at that time.
	XID  int       `json:"xid,omitempty"`
	At   time.Time `json:"at,omitzero"`
	Boot string    `json:"boot,omitempty"`
	// Ignored is the fault that a user has requested to ignore.
	Ignored string `json:"ignored,omitempty"`
	// Failures is the number of uncorrectable errors at the time of that request. A further error cancels the request.
	Failures float64 `json:"failures,omitempty"`
	// Seen is the machine's boot ID when the GPU was last present.
	Seen string `json:"seen,omitempty"`
	// MIG is the profile of the instances if an agent has split the GPU or has started to split it. The agent doesn't change splits of other programs.
	MIG       string `json:"mig,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`

	gpu gpu.GPU // the GPU in the last report
	// last is the last error that the driver has reported since the agent started, even if the error doesn't make the GPU sick.
	last int
	// leaking is the time since which the GPU's memory has been in use without a user, or zero. xids are the errors of the GPU in the order of their
	// times.
	leaking time.Time
	xids    []gpu.Event
	// waits is the reason why the split differs from the configured split, or "" if the reason is unknown.
	waits string
	// notBefore is the earliest time of the next attempt to split the GPU.
	notBefore time.Time
	reason    string // why it is sick
	since     time.Time
}

// openMonitor returns a monitor with the state that earlier agents stored.
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
			m.log.Info("a GPU was replaced", "gpu", s.Index, "bus", g.Bus, "uuid", g.UUID, "was", s.UUID)
			*s, m.news = slot{Index: s.Index, UUID: g.UUID}, true
		}
		g.Index, s.Seen, s.Simulated = s.Index, m.boot, g.Simulated
		if !g.Lost && g.MIG.Named() != s.gpu.MIG.Named() {
			m.news = true
		}
		if m.mig == "" && g.MIG != nil && !g.MIG.Enabled && !g.MIG.Pending {
			s.MIG = "" // it is back in one piece
		}
		if g.Lost && g.UUID == "" {
			was := s.gpu
			was.Lost = true
			g = was
		}
		for _, name := range []string{gpu.DoubleBitVolatile, gpu.RowRemapFailed, gpu.OtherUncorrectable} {
			// If a value couldn't be read, keep the previous value.
			if was, ok := s.gpu.Values[name]; ok && g.Values != nil {
				if _, read := g.Values[name]; !read {
					g.Values[name] = was
				}
			}
		}
		s.gpu = g
		m.leaks(s)
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
	m.reports++
}

// measured waits for a report that was begun after the call. measured waits for two reports, because the first report may have been begun before the
// call.
func (m *monitor) measured(ctx context.Context, limit time.Duration) error {
	count := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.reports
	}
	for first, end := count(), time.Now().Add(limit); count() < first+2; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
		if !time.Now().Before(end) {
			_, why := m.answered()
			return fmt.Errorf("no report of the GPUs within %s: %s", limit, cmp.Or(why, "the program that reads them doesn't answer"))
		}
	}
	return nil
}

// placed returns the GPUs in a report with unique addresses. placed leaves out GPUs without an address, because a lost GPU may report no values.
func placed(r *gpu.Report) (out []gpu.GPU) {
	seen := map[string]bool{}
	for _, g := range r.GPUs {
		g.Bus = cmp.Or(g.Bus, g.UUID) // a library may not report it
		if g.Bus != "" && !seen[g.Bus] {
			seen[g.Bus] = true
			out = append(out, g)
		}
	}
	return out
}

// realRoot returns root, or "" if no GPUs are configured. root is the folder with the machine's files.
func (m *monitor) realRoot(root string) string {
	if m.wanted == 0 {
		return ""
	}
	return root
}

// settle moves known slots to the current addresses of their GPUs, before new GPUs receive numbers. If cards were swapped, each number stays at its
// address. If an added card has changed the addresses of other cards, the numbers move with the cards.
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

// number returns the number of a new GPU. number returns NVML's number, or the first free number if NVML's number is already used.
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

const mostGPUs = 1024

// stored returns the state in the format of the file.
func (m *monitor) stored() string {
	data, err := json.Marshal(m.slots)
	if err != nil {
		panic(fmt.Sprintf("write slots as JSON: %v", err)) // marshalling them can't fail
	}
	return string(data)
}

// store writes the file if the state differs from before. If the write fails, the state is only in memory.
func (m *monitor) store(before string) {
	now := m.stored()
	if now == before {
		return
	}
	if err := replace.Durably(m.file, []byte(now), 0o600); err != nil {
		m.log.Error("the state of the GPUs can't be stored", "file", m.file, "err", err)
	}
}

func (m *monitor) versions() (driver, cuda string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.driver, m.cuda
}

// first waits for the first report. If the GPUs are known from an earlier run, the agent also starts without a report, so that pods with GPUs can
// terminate.
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

// answered reports whether a report has arrived. Without a report, answered also returns the reason.
func (m *monitor) answered() (bool, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen, m.silent
}

// bootID returns the boot ID of the kernel, or "" if the file isn't readable.
func bootID(proc string) string {
	data, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
