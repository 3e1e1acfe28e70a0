package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Options holds the options of a run. Dialer, Sink and Clock are required.
type Options struct {
	Dialer ssh.Dialer
	Sink   Sink
	// Clock is time.Now in production.
	Clock func() time.Time
	// Command is the operator's command line without --limit. The command for a retry begins with this command line.
	Command string
	// Retry returns the command that continues with the given hosts. It is only set for commands without --limit, and may be nil.
	Retry func(hosts []string) string
	// Owner identifies the run in the cluster's lock: user@host, pid.
	Owner string
	// DryRun means that the run stops after the plan. The Dialer itself also blocks changes in a dry run.
	DryRun bool
	// Limit lists the hosts of the run by name or address; empty means all hosts.
	Limit []string
	// Parallel is the number of hosts on which a run works at the same time. A separate limit of the Dialer applies to uploads.
	Parallel int
	// NoPeers makes paictl itself send every file to every machine.
	NoPeers bool
	// Patience holds the timeouts of transfers between machines. Zero values mean the defaults.
	Patience peer.Patience
	// StepTimeout is the time limit for one script on one host.
	StepTimeout time.Duration
	// RoundTrips returns the number of round trips to a host so far. It may be nil.
	RoundTrips func(host string) int
	// Copy is the cluster's copy of the configuration. The run compares it with the folder at its end; nil skips the comparison.
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

// Run is one execution of a command on the hosts of a cluster.
type Run struct {
	Id      string
	Spec    *Spec
	Want    *Desired // decided by the last survey
	Opts    Options
	slots   chan struct{} // one slot per host on which the run works
	Started time.Time
	Planned *Plan // the plan that is being applied
	// Only limits the run to the phases with these names; empty means all phases.
	Only []string
	// MayFix means that preflight may make safe repairs.
	MayFix bool
	// ReturnsFindings means that the run returns its findings to the caller, so it doesn't emit warnings as events.
	ReturnsFindings bool

	Mu      sync.Mutex
	Hosts   map[string]ssh.Host
	Failed  map[string]Failed
	Changes map[string]int // by host

	emitMu sync.Mutex
	JoinMu sync.Mutex
	Ticket *Ticket
	// Leader is the control plane machine on which the run executes work for the whole cluster.
	Leader *Node
	// Servers holds the API's address in the kubeconfig of each master, if FindLeader has read it.
	Servers map[*Node]string
	// peers is nil if paictl sends all files itself. Sent and Passed count the bytes of transferred files.
	peers        *Peers
	Sent, Passed atomic.Int64
}

// NewRun returns a run that hasn't connected to any host.
func NewRun(s *Spec, o Options) *Run {
	o.defaults()
	b := make([]byte, 4)
	_, _ = rand.Read(b) // its documentation says that it never fails
	return &Run{
		Id: hex.EncodeToString(b), Spec: s, Want: s.Fresh(), Opts: o, Started: o.Clock(),
		slots: make(chan struct{}, o.Parallel),
		Hosts: map[string]ssh.Host{}, Failed: map[string]Failed{}, Servers: map[*Node]string{}, Changes: map[string]int{},
	}
}

// Emit passes an event with the current time to the sink, one event at a time.
func (r *Run) Emit(e Event) {
	r.emitMu.Lock()
	defer r.emitMu.Unlock()
	e.Time = r.Opts.Clock()
	r.Opts.Sink.Emit(e)
}

// Host returns the connection to a node, or nil if the node isn't connected.
func (r *Run) Host(n *Node) ssh.Host {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.Hosts[n.Hostname]
}

// Close closes all connections to hosts.
func (r *Run) Close() {
	r.ClosePeers()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, h := range r.Hosts {
		_ = h.Close() // the run has ended, so the error doesn't matter
	}
}

// EmitPlanned emits the changes of a dry run.
func (r *Run) EmitPlanned(changes []Change) {
	for _, c := range changes {
		r.Emit(Event{Kind: EventPlanned, Host: c.Host, Phase: c.Phase, Change: &c})
	}
}

// ClosePeers stops the transfers between machines.
func (r *Run) ClosePeers() {
	if r.peers != nil {
		r.peers.close()
		r.peers = nil
	}
}

// Unchanged reports whether an error means that a machine stays unchanged although it needs changes.
func Unchanged(err error) bool {
	_, is := errors.AsType[interface {
		error
		Unchanged()
	}](err)
	return is
}

// SetAside records and emits the failure of a host. The run continues without this host. Only the host's first failure is recorded.
func (r *Run) SetAside(n *Node, phase string, err error) {
	f := Failed{Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err), Untouched: Unchanged(err)}
	r.Mu.Lock()
	_, known := r.Failed[n.Hostname]
	if !known {
		r.Failed[n.Hostname] = f
	}
	r.Mu.Unlock()
	if !known {
		r.Emit(Event{Kind: EventHostSetAside, Host: n.Hostname, Phase: phase, Error: f.Error, Hint: f.Hint})
	}
}

// IsAside reports whether the run continues without a host.
func (r *Run) IsAside(n *Node) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	_, is := r.Failed[n.Hostname]
	return is
}

// Selected returns the nodes in --limit, or all nodes if --limit isn't set.
func (r *Run) Selected() ([]*Node, error) {
	if len(r.Opts.Limit) == 0 {
		return r.Spec.Nodes, nil
	}
	var out []*Node
	for _, name := range r.Opts.Limit {
		n, err := r.Spec.Node(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// Limit returns the set of host names in --limit, or nil if --limit isn't set.
func (r *Run) Limit() map[string]bool {
	if len(r.Opts.Limit) == 0 {
		return nil
	}
	out := map[string]bool{}
	for _, name := range r.Opts.Limit {
		if n, err := r.Spec.Node(name); err == nil {
			out[n.Hostname] = true
		}
	}
	return out
}

// Reached returns the nodes to which the run connects: the selected nodes and all masters. The masters determine whether a cluster exists and which
// master can be the leader.
func (r *Run) Reached(nodes []*Node) []*Node {
	out := slices.DeleteFunc(r.Spec.ControlPlane(), func(n *Node) bool { return slices.Contains(nodes, n) })
	return append(out, nodes...)
}

// Each calls do for all nodes concurrently, limited by the number of slots, and returns the errors by node. It continues after a failure.
func (r *Run) Each(ctx context.Context, nodes []*Node, do func(context.Context, *Node) error) map[*Node]error {
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

func (r *Run) slot(ctx context.Context, do func() error) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.slots }()
	return do()
}

// Dial connects to a node. The connection stays open until the run closes.
func (r *Run) Dial(ctx context.Context, n *Node) error {
	h, err := r.Opts.Dialer.Dial(ctx, n.Target)
	if err != nil {
		return err
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.Hosts[n.Hostname] = h
	return nil
}

// Summary emits the summary of the run. If hosts failed, it returns a PartialError, which sets the exit code.
func (r *Run) Summary(command string, nodes []*Node, planned []Change) error {
	s := Summary{Command: command, DryRun: r.Opts.DryRun, Hosts: len(nodes), Elapsed: r.Opts.Clock().Sub(r.Started)}
	r.Mu.Lock()
	for _, n := range nodes {
		if c := r.Changes[n.Hostname]; c > 0 {
			s.Changed++
			s.Changes += c
		}
		if f, ok := r.Failed[n.Hostname]; ok {
			s.Failed = append(s.Failed, f)
		}
	}
	r.Mu.Unlock()
	if r.Opts.DryRun {
		s.Changes = len(planned)
		hosts := map[string]bool{}
		for _, c := range planned {
			hosts[c.Host] = true
		}
		s.Changed = len(hosts)
	}
	if r.Opts.RoundTrips != nil {
		for _, n := range nodes {
			s.RoundTrips = max(s.RoundTrips, r.Opts.RoundTrips(n.Hostname))
		}
	}
	if t := (Traffic{Sent: r.Sent.Load(), Passed: r.Passed.Load()}); t != (Traffic{}) {
		s.Traffic = &t
	}
	if len(s.Failed) > 0 {
		s.Retry = r.Retry(s.Failed, len(nodes))
	}
	r.Emit(Event{Kind: EventRunDone, Summary: &s, Elapsed: s.Elapsed})
	if len(s.Failed) > 0 {
		return &PartialError{Failed: s.Failed, Hosts: s.Hosts, Retry: s.Retry}
	}
	return nil
}

// Retry returns the command that continues with the failed hosts. The command contains the --limit of the failed command or a narrower limit.
func (r *Run) Retry(failed []Failed, hosts int) string {
	limited := r.Limit()
	outside := func(f Failed) bool { return limited != nil && !limited[f.Host] }
	switch {
	case r.Opts.Retry != nil:
		return r.Opts.Retry(FailedHosts(failed))
	case limited == nil && len(failed) == hosts:
		return r.Opts.Command
	case slices.ContainsFunc(failed, outside):
		// A host outside of --limit failed during work for the selected hosts, so the retry needs the same --limit.
		return r.Opts.Command + " --limit " + strings.Join(r.Opts.Limit, ",")
	}
	return r.Opts.Command + " --limit " + JoinHosts(failed)
}

// FailedHosts returns the names of failed hosts.
func FailedHosts(fs []Failed) []string {
	out := make([]string, len(fs))
	for i, f := range fs {
		out[i] = f.Host
	}
	return out
}

// JoinHosts returns the names of failed hosts as a value for --limit.
func JoinHosts(fs []Failed) string { return strings.Join(FailedHosts(fs), ",") }

// PartialError reports the hosts that a run has skipped.
type PartialError struct {
	Failed []Failed
	Hosts  int
	Retry  string
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of %d hosts failed: %s", len(e.Failed), e.Hosts, JoinHosts(e.Failed))
}

// ExitCode returns 1 if all hosts failed, otherwise 3. It also returns 3 if a host was left unchanged.
func (e *PartialError) ExitCode() int {
	if len(e.Failed) >= e.Hosts && !slices.ContainsFunc(e.Failed, func(f Failed) bool { return f.Untouched }) {
		return 1
	}
	return 3
}

// UploadFile returns the upload of an artifact's file to a path on a host.
func (r *Run) UploadFile(path string, a bundle.Artifact) ssh.File {
	name := r.Spec.Bundle.File(a)
	return ssh.File{
		Path: path, Mode: 0o600, SHA256: a.SHA256, Size: a.Size,
		Open: func() (io.ReadCloser, error) { return os.Open(name) },
	}
}

// IsCancel reports whether ctx has ended or err results from a canceled operation.
func IsCancel(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}

// Working returns the connected nodes that haven't failed.
func (r *Run) Working(nodes []*Node) []*Node {
	var out []*Node
	for _, n := range nodes {
		if r.Host(n) != nil && !r.IsAside(n) {
			out = append(out, n)
		}
	}
	return out
}

// Host returns an IP address as the host part of a URL, with brackets around an IPv6 address.
func Host(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// SetAsideAll calls SetAside for the hosts in errs. It returns an error only if the run was canceled.
func (r *Run) SetAsideAll(ctx context.Context, phase string, errs map[*Node]error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, n := range slices.SortedFunc(maps.Keys(errs), func(a, b *Node) int { return strings.Compare(a.Hostname, b.Hostname) }) {
		r.Emit(Event{Kind: EventPhaseFailed, Host: n.Hostname, Phase: phase, Error: errs[n].Error(), Hint: hint.Of(errs[n])})
		r.SetAside(n, phase, errs[n])
	}
	return nil
}
