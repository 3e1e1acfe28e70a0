package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

//go:embed scripts/down.sh
var downScript string

const phaseDown = "down"

// Down restores machines to their state before paictl. It stops the cluster's pods and programs and removes the files that they have written. It then
// undoes the changes in paictl's record on each machine, in reverse order. Down needs neither a bundle nor a working cluster. It skips machines that
// can't be reached and names them in a *PartialError. If purgeData is set, it also removes the data folder of the services.
func Down(ctx context.Context, s *engine.Spec, o engine.Options, purgeData bool) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	u, err := newUndo(s, purgeData)
	if err != nil {
		return nil, err
	}
	nodes, err := r.Selected()
	if err != nil {
		return nil, err
	}
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster down", Hosts: hostnames(nodes), Phases: []string{phaseDown}})
	if err := reach(ctx, r, r.Reached(nodes)); err != nil {
		return nil, err
	}
	ctx, unlock, err := lockIfReached(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := u.list(ctx, r, nodes)
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		if err := u.apply(ctx, r, nodes, found); err != nil {
			return nil, err
		}
		removeLock(ctx, r, nodes)
	} else {
		for _, n := range nodes {
			r.EmitPlanned(found[n])
		}
	}
	all := []engine.Change{}
	for _, n := range nodes {
		all = append(all, found[n]...)
	}
	return all, r.Summary("cluster down", nodes, all)
}

// undo holds the script's settings that the record on the host doesn't contain.
type undo struct{ etcdDir, podCIDR, dataDir string }

// newUndo returns the settings for an undo. To protect other data, it returns an error for folders that "cluster up" would reject.
func newUndo(s *engine.Spec, purgeData bool) (*undo, error) {
	k := s.Config.Kubernetes.Kubernetes
	u := &undo{etcdDir: k.EtcdDataPath, podCIDR: k.PodCIDR}
	if message, remedy := s.Config.BadEtcdFolder(); message != "" {
		return nil, hint.Errorf(remedy, "etcd-data-path: %s; paictl does not delete this folder", message)
	}
	if purgeData {
		u.dataDir = s.Config.Services.Cluster.Common.DataPath
		if message, remedy := s.Config.BadDataFolder(); message != "" {
			return nil, hint.Errorf(remedy, "cluster.common.data-path: %s; paictl does not delete this folder", message)
		}
	}
	return u, nil
}

// script returns the script for a mode, which is list or run. In the mode run, the script takes the host's lock.
func (u *undo) script(runID, mode string) string {
	head := engine.PreludeScript
	if mode == "run" {
		head += engine.ApplyScript
	}
	return fmt.Sprintf("%s%s\nrun=%s phase=%s\nETCD_DIR=%s POD_CIDR=%s DATA_DIR=%s\ndown %s\n", head, downScript,
		shell.Quote(runID), phaseDown, shell.Quote(strings.TrimSuffix(u.etcdDir, "/")), shell.Quote(u.podCIDR), shell.Quote(strings.TrimSuffix(u.dataDir, "/")), mode)
}

// list reads the changes that must be undone from every host.
func (u *undo) list(ctx context.Context, r *engine.Run, nodes []*engine.Node) (map[*engine.Node][]engine.Change, error) {
	var mu sync.Mutex
	found := map[*engine.Node][]engine.Change{}
	errs := r.Each(ctx, r.Working(nodes), func(ctx context.Context, n *engine.Node) error {
		cs, err := u.ask(ctx, r, n)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found[n] = cs
		return nil
	})
	return found, r.SetAsideAll(ctx, phaseDown, errs)
}

func (u *undo) ask(ctx context.Context, r *engine.Run, n *engine.Node) ([]engine.Change, error) {
	res, err := r.Exec(ctx, n, ssh.Script{Name: "down/list", Timeout: r.Opts.StepTimeout, Body: u.script(r.Id, "list")})
	if err != nil {
		return nil, err
	}
	return undoChanges(n, res.Stdout), nil
}

// undoChanges parses the script's output. The fields of each line are: undo, action, target, detail.
func undoChanges(n *engine.Node, out []byte) []engine.Change {
	var cs []engine.Change
	a, _ := answer.Parse(out) // a line is a path and a few words
	for _, f := range a.All("undo") {
		for len(f) < 3 {
			f = append(f, "")
		}
		cs = append(cs, engine.Change{Host: n.Hostname, Phase: phaseDown, Action: f[0], Target: f[1], Detail: f[2]})
	}
	return cs
}

func (u *undo) apply(ctx context.Context, r *engine.Run, nodes []*engine.Node, found map[*engine.Node][]engine.Change) error {
	errs := r.Each(ctx, r.Working(nodes), func(ctx context.Context, n *engine.Node) error {
		if len(found[n]) == 0 {
			r.Emit(engine.Event{Kind: engine.EventPhaseSkipped, Host: n.Hostname, Phase: phaseDown})
			r.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
			return nil
		}
		return u.host(ctx, r, n, len(found[n]))
	})
	return r.SetAsideAll(ctx, phaseDown, errs)
}

func (u *undo) host(ctx context.Context, r *engine.Run, n *engine.Node, planned int) error {
	start := r.Opts.Clock()
	r.Emit(engine.Event{Kind: engine.EventPhaseStarted, Host: n.Hostname, Phase: phaseDown, Changes: planned})
	done, err := u.run(ctx, r, n)
	for i := range done {
		r.Emit(engine.Event{Kind: engine.EventChanged, Host: n.Hostname, Phase: phaseDown, Change: &done[i]})
	}
	r.Mu.Lock()
	r.Changes[n.Hostname] += len(done)
	r.Mu.Unlock()
	if err != nil {
		return err
	}
	r.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: n.Hostname, Phase: phaseDown, Changes: len(done), Elapsed: r.Opts.Clock().Sub(start)})
	r.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
	return nil
}

// run runs the script on one host. It returns the changes that the script has undone, even if the script failed. It emits a warning for each change
// that the script could not undo.
func (u *undo) run(ctx context.Context, r *engine.Run, n *engine.Node) ([]engine.Change, error) {
	res, err := r.Exec(ctx, n, ssh.Script{Name: "down/run", Mutates: true, Timeout: r.Opts.StepTimeout, Body: u.script(r.Id, "run")})
	done := undoChanges(n, res.Stdout)
	if err != nil {
		return done, err
	}
	for l := range strings.Lines(string(res.Stderr)) {
		if l = strings.TrimSpace(l); l != "" {
			r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phaseDown, Message: l})
		}
	}
	return done, nil
}

// reach dials hosts for an operation that must continue without unreachable hosts. It skips hosts that don't respond, including hosts of the control
// plane. It returns an error if hosts reject the login, unless only a few workers do so.
func reach(ctx context.Context, r *engine.Run, nodes []*engine.Node) error {
	errs := r.Each(ctx, nodes, r.Dial)
	var findings []preflight.Finding
	for _, n := range nodes {
		err := errs[n]
		switch {
		case err == nil:
		case engine.IsCancel(ctx, err):
			return context.Canceled
		case errors.Is(err, ssh.ErrUnreachable), !n.ControlPlane && refusedAlone(err, len(errs), len(nodes)):
			r.SetAside(n, "connect", err)
		default:
			findings = append(findings, preflight.Finding{
				Host: n.Hostname, Check: "connect", Severity: preflight.SeverityError, Message: err.Error(), Remedy: hint.Of(err),
			})
		}
	}
	if len(findings) > 0 {
		return refuse(r, findings)
	}
	return nil
}

// lockIfReached takes the cluster's lock. If no machine of the control plane responds, it emits a warning, and the run uses only the locks of the
// machines.
func lockIfReached(ctx context.Context, r *engine.Run) (context.Context, func(), error) {
	masters := r.Spec.ControlPlane()
	if len(r.Working(masters)) == 0 && !r.Opts.DryRun {
		r.Emit(engine.Event{Kind: engine.EventWarning, Host: masters[0].Hostname, Phase: phaseDown,
			Message: "no machine of the control plane answers, so paictl could not get the cluster's lock", Hint: "make sure that no other paictl is changing this cluster now"})
		return ctx, func() {}, nil
	}
	return r.Lock(ctx)
}

// removeLock deletes the file of the cluster's lock while this run holds the lock. If the deletion fails, the file disappears when the machine
// restarts.
func removeLock(ctx context.Context, r *engine.Run, nodes []*engine.Node) {
	var masters []*engine.Node
	for _, n := range r.Working(nodes) {
		if n.ControlPlane {
			masters = append(masters, n)
		}
	}
	for n, err := range r.Each(ctx, masters, func(ctx context.Context, n *engine.Node) error {
		_, err := r.Exec(ctx, n, ssh.Script{Name: "down/unlock", Mutates: true, Body: engine.PreludeScript + "rm -f \"$R" + engine.ClusterLock + "\"\n"})
		return err
	}) {
		if ctx.Err() == nil {
			r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phaseDown, Message: err.Error()})
		}
	}
}
