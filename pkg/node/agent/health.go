package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// This file determines the faults of GPUs, and handles requests to ignore faults.

// mostXIDs is the maximum number of stored errors of a GPU, because a failing GPU may report thousands of errors.
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
	if x.BreaksGPU() && (s.XID == 0 || x.Action == gpu.Restart || s.Ignored != "") {
		s.XID, s.At, s.Boot, s.Ignored = e.XID, e.At, m.boot, "" // a new error cancels a request to ignore the previous one
	}
}

// silentFor is how long the state of GPUs may be unknown before the GPUs count as sick. During this time, the program that reads the GPUs can
// restart.
const silentFor = 15 * time.Second

// tick checks for changes of health that depend only on the time.
func (m *monitor) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judge()
}

// unseen records that the state of the GPUs is unknown, and the reason.
func (m *monitor) unseen(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.silent == "" {
		m.silentSince = m.now()
	}
	m.silent = why.Error()
	m.log.Warn("the GPUs can't be checked", "err", why)
	m.judge()
}

// judge determines which GPUs are sick. judge closes m.changed if the result has changed. The caller holds the lock.
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
			s.Ignored = "" // the fault to ignore is gone
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

// These are faults of a GPU with uncorrectable errors. The texts leave out the number of errors, because the number may grow.
const (
	memoryFailed = "its memory has uncorrectable errors; reset it, or restart the machine"
	othersFailed = "it had uncorrectable errors (RAS); reset it, or restart the machine"
)

// sickness returns the worst fault of a GPU that isn't ignored, and the time when this fault began. sickness returns "" if the GPU has no fault or
// its only fault is ignored.
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

// reasons returns all faults of a GPU. The worst fault comes first.
func (m *monitor) reasons(s *slot) (out []string) {
	if s.XID != 0 {
		out = append(out, gpu.FindXID(s.XID).String())
	}
	if m.silent != "" {
		if m.now().Sub(m.silentSince) >= silentFor {
			out = append(out, m.silent)
		}
		return out // the last values may be outdated
	}
	v := s.gpu.Values
	for _, is := range []struct {
		wrong bool
		text  string
	}{
		{s.gpu.Lost, "it is lost: it doesn't answer; restart the machine"},
		{s.gpu.Unusable != "", s.gpu.Unusable},
		{m.unlike(s) != "", m.notSplit(s)},
		{v[gpu.DoubleBitVolatile] > 0, memoryFailed},
		{v[gpu.RowRemapFailed] > 0, "it can no longer replace damaged memory; replace the GPU"},
		{v[gpu.OtherUncorrectable] > 0, othersFailed},
		{s.leakedBy(m.now()), leaked},
	} {
		if is.wrong {
			out = append(out, is.text)
		}
	}
	return out
}

// failures returns the number of uncorrectable errors of a GPU, in the memory and in other parts.
func failures(s *slot) float64 {
	return s.gpu.Values[gpu.DoubleBitVolatile] + s.gpu.Values[gpu.OtherUncorrectable]
}

// ignore makes a GPU available despite its current fault. Another fault makes the GPU unavailable again. If wrong isn't empty, it must be equal to
// the current fault, because a request may arrive late.
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
	case s.gpu.Lost || m.silent != "" || s.reason == m.notSplit(s):
		return "", fmt.Errorf("it can't be used: %s", s.reason)
	case wrong != "" && wrong != s.reason:
		return "", fmt.Errorf("it now has another fault: %s", s.reason)
	}
	s.Ignored, s.Failures, m.news = s.reason, failures(s), true
	m.log.Warn("the fault of a GPU is ignored", "gpu", s.Index, "reason", s.Ignored)
	m.judge()
	m.store(before)
	return "it gets jobs again, although: " + s.Ignored, nil
}

// heed cancels ignore for a GPU.
func (m *monitor) heed(index int32) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	s := m.slotOf(index)
	if s == nil || s.Ignored == "" {
		return "", errors.New("none of its faults is ignored")
	}
	was := s.Ignored
	s.Ignored, m.news = "", true
	m.judge()
	m.store(before)
	return "it gets no more jobs: " + was, nil
}

// wasReset records a reset of a GPU and clears the errors that a reset removes. The next report contains the remaining faults.
func (m *monitor) wasReset(index int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	if s := m.slotOf(index); s != nil {
		m.log.Info("a GPU was reset", "gpu", s.Index)
		s.XID, s.At, s.Boot, s.last, s.Ignored = 0, time.Time{}, "", 0, ""
		delete(s.gpu.Values, gpu.DoubleBitVolatile) // it counts errors since the last reset
		s.leaking = time.Time{}
		m.news = true
		m.judge()
	}
	m.store(before)
}

// left returns a fault that a reset hasn't cleared, or "". left ignores a wrong split, because a reset removes the instances of a GPU and the agent
// creates the instances again later.
func (m *monitor) left(index int32) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slotOf(index)
	if s == nil {
		return "it is gone"
	}
	for _, fault := range m.reasons(s) {
		if fault != m.notSplit(s) || !m.splits(s) {
			return fault
		}
	}
	return ""
}

// slotOf returns the slot of the GPU with the given number, or nil. The caller holds the lock.
func (m *monitor) slotOf(index int32) *slot {
	for _, s := range m.slots {
		if s.Index == index {
			return s
		}
	}
	return nil
}
