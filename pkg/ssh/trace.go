package ssh

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Op is a kind of operation of a Client on a host.
type Op string

// The operations that are reported to a Tracer. An upload's scripts are part of it and are not
// reported on their own.
const (
	OpDial   Op = "dial"
	OpRun    Op = "run"
	OpHold   Op = "hold"
	OpUpload Op = "upload"
	OpClosed Op = "closed" // the connection broke
)

// Event describes one operation that has ended. It holds no secret: neither a script's
// body nor its output.
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

// Tracer receives every finished operation. Trace is called concurrently.
type Tracer interface{ Trace(Event) }

// Tracers passes each event to all its elements.
type Tracers []Tracer

// Trace passes e to all tracers.
func (ts Tracers) Trace(e Event) {
	for _, t := range ts {
		t.Trace(e)
	}
}

// Count holds a Counter's values for one host.
type Count struct {
	Dials, RoundTrips, Errors int
	BytesOut, BytesIn         int64
}

// Counter is a Tracer that adds up round trips and bytes per host. Its zero value is
// ready to use.
type Counter struct {
	mu    sync.Mutex
	hosts map[string]Count
}

// Trace adds e to the host's count.
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

// Host returns the counts of one host.
func (c *Counter) Host(name string) Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[name]
}

// Hosts returns a copy of all counts by host name.
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

// SlogTracer writes events to a log: successes at level debug, the rest as warnings.
type SlogTracer struct{ Log *slog.Logger }

// Trace logs e.
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
