package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Options that all runs have. Dialer, Sink and Clock are needed; the rest has defaults.
type Options struct {
	Dialer ssh.Dialer
	Sink   Sink
	// Clock is time.Now in production.
	Clock func() time.Time
	// Command is the operator's command line without --limit; the summary's retry is made from it.
	Command string
	// Retry makes the command that continues with some hosts, for commands that take no --limit; may be nil.
	Retry func(hosts []string) string
	// Owner names the run in the cluster's lock: user@host, pid.
	Owner string
	// DryRun stops after the plan. The Dialer's gate refuses changes anyway.
	DryRun bool
	// Limit limits a run to some hosts; empty means all.
	Limit []string
	// Parallel is how many hosts are worked on at once; the Dialer limits how many of them
	// receive files.
	Parallel int
	// NoPeers sends every file from the machine of paictl, even if machines could get it from each other.
	NoPeers bool
	// Patience is how long machines wait for each other, and paictl for them, when they pass files on. Zero values mean the defaults.
	Patience peer.Patience
	// StepTimeout limits one script on one host.
	StepTimeout time.Duration
	// RoundTrips returns how many round trips a host needed so far; may be nil.
	RoundTrips func(host string) int
	// Copy is compared with the folder at the end of a run; nil skips the comparison.
	Copy *Copy
}

func (o *Options) defaults() {
	if o.Parallel <= 0 {
		o.Parallel = 64
	}
	if o.StepTimeout <= 0 {
		o.StepTimeout = 10 * time.Minute
	}
}

// run is one execution of a command over the hosts of a cluster.
type run struct {
	id      string
	spec    *Spec
	want    *desired // as the last survey decided
	opts    Options
	slots   chan struct{} // hosts being worked on
	started time.Time
	planned *plan // what is being applied
	// only limits the run to some phases; empty means all.
	only []string
	// mayFix lets preflight make the safe repairs.
	mayFix bool
	// returnsFindings means that the caller gets the findings, so that warnings aren't also emitted as events.
	returnsFindings bool

	mu      sync.Mutex
	hosts   map[string]ssh.Host
	failed  map[string]Failed
	changes map[string]int // by host

	emitMu sync.Mutex
	joinMu sync.Mutex
	ticket *ticket
	// leader is the control plane machine through which cluster-wide work is done.
	leader *Node
	// servers holds the API's address in the masters' own kubeconfigs, as far as findLeader asked.
	servers map[*Node]string
	// peers is nil while machines get all their files from paictl. sent and passed count bytes of files.
	peers        *peers
	sent, passed atomic.Int64
}

func newRun(s *Spec, o Options) *run {
	o.defaults()
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails, by its documentation
	return &run{
		id: hex.EncodeToString(b), spec: s, want: s.fresh(), opts: o, started: o.Clock(),
		slots: make(chan struct{}, o.Parallel),
		hosts: map[string]ssh.Host{}, failed: map[string]Failed{}, servers: map[*Node]string{}, changes: map[string]int{},
	}
}

func (r *run) emit(e Event) {
	r.emitMu.Lock()
	defer r.emitMu.Unlock()
	e.Time = r.opts.Clock()
	r.opts.Sink.Emit(e)
}

func (r *run) host(n *Node) ssh.Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hosts[n.Hostname]
}

func (r *run) close() {
	r.closePeers()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		_ = h.Close() // the run is over, so the error has no reader
	}
}

// closePeers stops the machines from serving files to each other.
func (r *run) closePeers() {
	if r.peers != nil {
		r.peers.close()
		r.peers = nil
	}
}

// leftAlone reports whether an error means that a machine was left unchanged although it needs changes.
func leftAlone(err error) bool {
	_, is := errors.AsType[interface {
		error
		leftAlone()
	}](err)
	return is
}

// setAside records that a host failed; the others continue without it.
func (r *run) setAside(n *Node, phase string, err error) {
	f := Failed{Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err), Untouched: leftAlone(err)}
	r.mu.Lock()
	_, known := r.failed[n.Hostname]
	if !known {
		r.failed[n.Hostname] = f
	}
	r.mu.Unlock()
	if !known {
		r.emit(Event{Kind: EventHostSetAside, Host: n.Hostname, Phase: phase, Error: f.Error, Hint: f.Hint})
	}
}

func (r *run) isAside(n *Node) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.failed[n.Hostname]
	return is
}

// selected returns the nodes of this run: all, or those of --limit.
func (r *run) selected() ([]*Node, error) {
	if len(r.opts.Limit) == 0 {
		return r.spec.Nodes, nil
	}
	var out []*Node
	for _, name := range r.opts.Limit {
		n, err := r.spec.Node(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// limit returns the host names of --limit, or nil without a limit.
func (r *run) limit() map[string]bool {
	if len(r.opts.Limit) == 0 {
		return nil
	}
	out := map[string]bool{}
	for _, name := range r.opts.Limit {
		if n, err := r.spec.Node(name); err == nil {
			out[n.Hostname] = true
		}
	}
	return out
}

// reached returns the selected nodes and always all of the control plane: only all masters together
// know whether a cluster exists, and which of them may lead a run.
func (r *run) reached(nodes []*Node) []*Node {
	out := slices.DeleteFunc(r.spec.ControlPlane(), func(n *Node) bool { return slices.Contains(nodes, n) })
	return append(out, nodes...)
}

// each works on all nodes at once, as many as there are slots, and returns the errors by node. One
// node's failure does not stop the others.
func (r *run) each(ctx context.Context, nodes []*Node, do func(context.Context, *Node) error) map[*Node]error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := map[*Node]error{}
	for _, n := range nodes {
		wg.Go(func() {
			err := r.slot(ctx, func() error { return do(ctx, n) })
			if err != nil {
				mu.Lock()
				errs[n] = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errs
}

// slot runs do while holding one of the run's slots.
func (r *run) slot(ctx context.Context, do func() error) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.slots }()
	return do()
}

// dial connects to a node and keeps the connection for the whole run.
func (r *run) dial(ctx context.Context, n *Node) error {
	h, err := r.opts.Dialer.Dial(ctx, n.Target)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts[n.Hostname] = h
	return nil
}

// summary emits the summary and returns the error that sets the exit code.
func (r *run) summary(command string, nodes []*Node, planned []Change) error {
	s := Summary{Command: command, DryRun: r.opts.DryRun, Hosts: len(nodes), Elapsed: r.opts.Clock().Sub(r.started)}
	r.mu.Lock()
	for _, n := range nodes {
		if c := r.changes[n.Hostname]; c > 0 {
			s.Changed++
			s.Changes += c
		}
		if f, ok := r.failed[n.Hostname]; ok {
			s.Failed = append(s.Failed, f)
		}
	}
	r.mu.Unlock()
	if r.opts.DryRun {
		s.Changes = len(planned)
		hosts := map[string]bool{}
		for _, c := range planned {
			hosts[c.Host] = true
		}
		s.Changed = len(hosts)
	}
	if r.opts.RoundTrips != nil {
		for _, n := range nodes {
			s.RoundTrips = max(s.RoundTrips, r.opts.RoundTrips(n.Hostname))
		}
	}
	if t := (Traffic{Sent: r.sent.Load(), Passed: r.passed.Load()}); t != (Traffic{}) {
		s.Traffic = &t
	}
	if len(s.Failed) > 0 {
		s.Retry = r.retry(s.Failed, len(nodes))
	}
	r.emit(Event{Kind: EventRunDone, Summary: &s, Elapsed: s.Elapsed})
	if len(s.Failed) > 0 {
		return &PartialError{Failed: s.Failed, Hosts: s.Hosts, Retry: s.Retry}
	}
	return nil
}

// retry returns the command that continues with the hosts that failed. It never reaches further
// than the command that failed: a limited run's retry is limited.
func (r *run) retry(failed []Failed, hosts int) string {
	limited := r.limit()
	outside := func(f Failed) bool { return limited != nil && !limited[f.Host] }
	switch {
	case r.opts.Retry != nil:
		return r.opts.Retry(failedHosts(failed))
	case limited == nil && len(failed) == hosts:
		return r.opts.Command
	case slices.ContainsFunc(failed, outside):
		// The first machine failed while it worked for those under --limit.
		return r.opts.Command + " --limit " + strings.Join(r.opts.Limit, ",")
	}
	return r.opts.Command + " --limit " + joinHosts(failed)
}

func failedHosts(fs []Failed) []string {
	out := make([]string, len(fs))
	for i, f := range fs {
		out[i] = f.Host
	}
	return out
}

func joinHosts(fs []Failed) string { return strings.Join(failedHosts(fs), ",") }

// PartialError reports that some hosts were set aside and the others are done.
type PartialError struct {
	Failed []Failed
	Hosts  int
	Retry  string
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of %d hosts failed: %s", len(e.Failed), e.Hosts, joinHosts(e.Failed))
}

// ExitCode is 3 for a partial failure, and 1 if all hosts failed. A host that was only held back is unchanged.
func (e *PartialError) ExitCode() int {
	if len(e.Failed) >= e.Hosts && !slices.ContainsFunc(e.Failed, func(f Failed) bool { return f.Untouched }) {
		return 1
	}
	return 3
}

func (r *run) uploadFile(path string, a bundle.Artifact) ssh.File {
	name := r.spec.Bundle.File(a)
	return ssh.File{
		Path: path, Mode: 0o600, SHA256: a.SHA256, Size: a.Size,
		Open: func() (io.ReadCloser, error) { return os.Open(name) },
	}
}

// isCancel reports whether a run was cancelled.
func isCancel(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}
