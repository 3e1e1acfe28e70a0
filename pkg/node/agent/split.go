package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// This file splits GPUs into instances (MIG), or removes splits, as the machine's SKU defines. A GPU with a wrong split isn't allocated to jobs. If a
// claim uses parts of a GPU, the agent splits the GPU after the claim has ended.

// unlike describes a GPU's split if it differs from the configured split. unlike returns "" if the split is correct or unknown. The caller holds the
// lock.
func (m *monitor) unlike(s *slot) string {
	is := s.gpu.MIG
	enabled := is != nil && is.Enabled
	switch {
	case s.gpu.Lost || s.gpu.UUID == "":
		return ""
	case m.mig == "" && !enabled:
		return ""
	case m.mig == "":
		return "it is split into instances (MIG): " + is.String()
	case is == nil:
		return fmt.Sprintf("it should have instances of the profile %s, but can't be split (MIG)", m.mig)
	case is.SplitInto(m.mig, int(max(m.parts, 1))):
		return ""
	}
	return fmt.Sprintf("it should be split into %d x %s (MIG), but is %s", max(m.parts, 1), m.mig, is)
}

// notSplit returns the fault of a GPU with a wrong split, or "". The fault contains the reason why the agent hasn't split the GPU yet. The caller
// holds the lock.
func (m *monitor) notSplit(s *slot) string {
	unlike := m.unlike(s)
	switch {
	case unlike == "":
		return ""
	case !m.splits(s):
		return unlike + "; its SKU in layout.yaml doesn't have this: write gpu.mig there, or run nvidia-smi -mig 0 on the machine"
	case s.waits != "":
		return unlike + "; " + s.waits
	}
	return unlike
}

// splits reports whether the agent may split a GPU or remove its split. The agent doesn't change splits of other programs. The caller holds the lock.
func (m *monitor) splits(s *slot) bool {
	return m.mig != "" && s.gpu.MIG != nil || m.mig == "" && s.MIG != ""
}

// toSplit returns the numbers of the GPUs with a wrong split. now are the GPUs that the agent may split now. later are the GPUs whose next attempt
// isn't due yet.
func (m *monitor) toSplit() (now, later []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.slots {
		switch {
		case !m.splits(s) || m.unlike(s) == "":
		case m.silent != "" || m.now().Before(s.notBefore):
			later = append(later, s.Index)
		default:
			now = append(now, s.Index)
		}
	}
	slices.Sort(now)
	return now, later
}

// named returns a text with the names of all GPU instances.
func (m *monitor) named() (out string) {
	cards, _ := m.cards()
	for _, c := range cards {
		out += "; " + c.MIG.Named()
	}
	return out
}

// begin records that the agent is about to split a GPU, so that the next agent may continue or revert the split.
func (m *monitor) begin(index int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	if s := m.slotOf(index); s != nil && m.mig != "" {
		s.MIG = m.mig
	}
	m.store(before)
}

// ended records the result of a split, and the pause before the next attempt. waits is the reason of a failure, or "" after a success.
func (m *monitor) ended(index int32, waits string, pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stored()
	if s := m.slotOf(index); s != nil {
		s.waits, s.notBefore = waits, m.now().Add(pause)
		if waits == "" && m.mig == "" {
			s.MIG = ""
		}
		m.judge()
	}
	m.store(before)
}

const (
	// splitting is the time limit for splitting a GPU, including resets.
	splitting = 3 * time.Minute
	// splitEvery is the interval between checks for the end of claims that block a split.
	splitEvery = 15 * time.Second
	// busyPause is the pause before the next attempt if programs outside of pods use the GPU. The pause is long because each attempt interrupts the
	// reports of all GPUs.
	busyPause = time.Minute
	// failedPause is the pause before the next attempt after a failure. The pause is long because each attempt may reset the GPU.
	failedPause = 10 * time.Minute
	// firstSplits is how long the agent may split GPUs before it publishes the GPUs and becomes ready.
	firstSplits = 2 * time.Minute
	// nextReport is how long the agent waits for a report with the new split.
	nextReport = 20 * time.Second
)

// keepSplit splits GPUs when their split differs from the configured split. keepSplit returns when ctx ends.
func (d *Driver) keepSplit(ctx context.Context) {
	for ctx.Err() == nil {
		_, changed := d.gpus.devices()
		wait := tellEvery
		if !d.split(ctx) {
			wait = splitEvery
		}
		d.pause(ctx, changed, wait)
	}
}

// split splits the unused GPUs as configured. all reports whether all GPUs now have the configured split.
func (d *Driver) split(ctx context.Context) (all bool) {
	failed := map[int32]error{}
	todo, _ := d.gpus.toSplit()
	for _, index := range todo {
		failed[index] = d.splitOne(ctx, index)
	}
	d.await(ctx, todo, failed)
	for _, index := range todo {
		waits, pause, err := "", time.Duration(0), failed[index]
		var busy *gpu.BusyError
		var held *heldError
		switch {
		case err == nil:
			d.log.InfoContext(ctx, "a GPU was split", "gpu", index, "into", d.gpus.mig)
		case errors.As(err, &held):
			waits = "it waits: " + held.Error()
		case errors.As(err, &busy):
			waits, pause = "it waits: "+busy.Why, busyPause
		default:
			waits, pause = "that doesn't work: "+err.Error(), failedPause
			d.log.WarnContext(ctx, "a GPU can't be split", "gpu", index, "err", err)
		}
		d.gpus.ended(index, waits, pause)
	}
	now, later := d.gpus.toSplit()
	return len(now)+len(later) == 0
}

// splitOne splits a GPU, or removes its split.
func (d *Driver) splitOne(ctx context.Context, index int32) error {
	g, ok := d.gpus.cardOf(index)
	if !ok {
		return fmt.Errorf("the machine has no GPU %d", index)
	}
	want := gpu.Split{Profile: d.gpus.mig}
	if want.Profile != "" {
		want.Instances = int(max(d.gpus.parts, 1))
	}
	keep, err := d.records.holdToSplit(index, int32(want.Instances), want.Profile)
	if err != nil {
		return err
	}
	defer d.records.release(index)
	ctx, cancel := context.WithTimeout(ctx, splitting)
	defer cancel()
	d.gpus.begin(index)
	d.log.InfoContext(ctx, "a GPU is being split", "gpu", index, "into", want.Profile, "is", g.MIG.String())
	return d.vendor.split(ctx, &g, want, keep)
}

// await waits until reports contain the new splits. await adds an error to failed for each GPU whose new split doesn't appear. During the wait, parts
// of these GPUs aren't allocated to claims.
func (d *Driver) await(ctx context.Context, todo []int32, failed map[int32]error) {
	for end := time.Now().Add(nextReport); ; {
		missing, _ := d.gpus.toSplit()
		missing = slices.DeleteFunc(missing, func(index int32) bool { return !slices.Contains(todo, index) || failed[index] != nil })
		if len(missing) == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(end) {
				continue
			}
		}
		for _, index := range missing {
			failed[index] = errors.New("the driver reports success, but shows something else")
		}
		return
	}
}
