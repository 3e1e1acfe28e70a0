package ssh

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Op is the kind of an operation on a host.
type Op string

// These operations are reported to a Tracer. The scripts of an upload are part of the upload and aren't reported separately.
const (
	OpDial   Op = "dial"
	OpRun    Op = "run"
	OpHold   Op = "hold"
	OpUpload Op = "upload"
	OpClosed Op = "closed" // the connection broke
)

// Event describes an operation that has ended. An event contains no secrets. Therefore it doesn't contain the body or the output of a script.
type Event struct {
	Host       string
	Op         Op
	Name       string // the name of the script
	Start      time.Time
	Duration   time.Duration
	RoundTrips int   // sessions opened: scripts, and one for an upload's bytes
	BytesOut   int64 // to the host: programs and file contents
	BytesIn    int64 // from the host: standard output and standard error
	ExitCode   int
	Err        error
}

// Tracer receives every finished operation. Trace may be called concurrently.
type Tracer interface{ Trace(Event) }

// Tracers is a Tracer that passes each event to all elements.
type Tracers []Tracer

// Trace passes e to all elements.
func (ts Tracers) Trace(e Event) {
	for _, t := range ts {
		t.Trace(e)
	}
}

// Count holds the counts of a Counter for one host.
type Count struct {
	Dials, RoundTrips, Errors int
	BytesOut, BytesIn         int64
}

// Counter is a Tracer that counts the round trips and bytes of each host. The zero value is ready to use.
type Counter struct {
	mu    sync.Mutex
	hosts map[string]Count
}

// Trace adds e to the counts of its host.
func (c *Counter) Trace(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts == nil {
		c.hosts = map[string]Count{}
	}
	n := c.hosts[e.Host]
	if e.Op == OpDial && e.Err == nil {
		n.Dials++
	}
	if e.Err != nil {
		n.Errors++
	}
	n.RoundTrips += e.RoundTrips
	n.BytesOut += e.BytesOut
	n.BytesIn += e.BytesIn
	c.hosts[e.Host] = n
}

// Host returns the counts of a host.
func (c *Counter) Host(name string) Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[name]
}

// Hosts returns a copy of all counts, by host name.
func (c *Counter) Hosts() map[string]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.hosts)
}

// Reset clears all counts.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts = nil
}

// SlogTracer is a Tracer that logs successful operations at level debug and failed operations as warnings.
type SlogTracer struct{ Log *slog.Logger }

// Trace writes e to the log.
func (t SlogTracer) Trace(e Event) {
	level := slog.LevelDebug
	attrs := []slog.Attr{
		slog.String("host", e.Host), slog.String("op", string(e.Op)), slog.String("script", e.Name),
		slog.Duration("duration", e.Duration), slog.Int("roundTrips", e.RoundTrips),
		slog.Int64("bytesOut", e.BytesOut), slog.Int64("bytesIn", e.BytesIn), slog.Int("exitCode", e.ExitCode),
	}
	if e.Err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	t.Log.LogAttrs(context.Background(), level, "ssh", attrs...)
}
