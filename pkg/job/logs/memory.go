package logs

import (
	"errors"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Memory limits how many lines of logs a server holds until it can pass them on. The server holds lines of several tasks to sort them, and the
// last lines that match a search.
type Memory struct {
	// Each is the limit for one request, and All is the limit for all requests together, in bytes.
	Each, All int64

	mu       sync.Mutex
	reserved int64
}

// perLine is roughly how many bytes a line takes in addition to its text.
const perLine = 128

func sizeOf(l *logapi.Line) int64 { return int64(len(l.Stamp)+len(l.Text)) + perLine }

// errMemory means that logs exceed the memory limit, so that reading stops.
var errMemory = errors.New("logs are too large")

const memoryRemedy = "choose a task with --task, or fewer lines with --tail or --since"

// reservation counts the bytes that one request holds of a Memory. A nil reservation has no limit.
type reservation struct {
	of *Memory

	mu sync.Mutex
	n  int64
}

func (m *Memory) open() *reservation {
	if m == nil {
		return nil
	}
	return &reservation{of: m}
}

func (h *reservation) take(l *logapi.Line) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := sizeOf(l)
	if h.n+n > h.of.Each {
		return hint.Wrap(&memoryError{"the logs are larger than " + size(h.of.Each) + " together, which are put in order before they are shown"}, memoryRemedy)
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.of.reserved+n > h.of.All {
		return hint.Wrap(&memoryError{"too many large logs are read at this moment"}, "try again in a moment; or "+memoryRemedy)
	}
	h.n, h.of.reserved = h.n+n, h.of.reserved+n
	return nil
}

func (h *reservation) give(n int64) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.n, h.of.reserved = h.n-n, h.of.reserved-n
}

// end releases all memory that the request holds.
func (h *reservation) end() {
	if h == nil {
		return
	}
	h.mu.Lock()
	n := h.n
	h.mu.Unlock()
	h.give(n)
}

type memoryError struct{ text string }

func (e *memoryError) Error() string        { return e.text }
func (e *memoryError) Is(target error) bool { return target == errMemory }

// latest keeps the last lines of a log, up to the number most.
type latest struct {
	most     int64
	reserved *reservation
	lines    []logapi.Line
}

func (k *latest) add(l logapi.Line) error {
	if k.most <= 0 {
		return nil
	}
	if err := k.reserved.take(&l); err != nil {
		return err
	}
	if k.lines = append(k.lines, l); int64(len(k.lines)) > k.most {
		k.reserved.give(sizeOf(&k.lines[0]))
		k.lines = k.lines[1:]
	}
	return nil
}

// flush passes on the lines that were kept, and releases their memory.
func (k *latest) flush(give func(logapi.Line) error) error {
	for i := range k.lines {
		l := k.lines[i]
		k.lines[i] = logapi.Line{}
		k.reserved.give(sizeOf(&l))
		if err := give(l); err != nil {
			return err
		}
	}
	return nil
}
