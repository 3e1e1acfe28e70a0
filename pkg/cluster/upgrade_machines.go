package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// jobsLook is the interval of the checks whether a machine's jobs have finished.
const jobsLook = 10 * time.Second

// machines upgrades the programs of all machines. It first upgrades the masters one by one, then several workers at a time. Workers without jobs
// come first. The first result reports whether the run upgraded all machines.
func (u *upgrade) machines(ctx context.Context, w *engine.World) (complete bool, err error) {
	p, err := u.Plan(w, u.members(w), phases.In(u.Want, engine.UpgradePrograms))
	if err != nil {
		return false, err
	}
	u.Planned = p
	masters, workers := u.due(w, p)
	for i, n := range masters {
		u.machine(ctx, p, n, nil)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if u.IsAside(n) && !u.isUntouched(n) {
			u.holdBack(append(masters[i+1:], workers...), phases.PhaseKubelet, n)
			return false, nil
		}
	}
	q := &upgradeQueue{waiting: workers, most: u.opts.MaxFailures}
	var wg sync.WaitGroup
	for range min(u.opts.AtOnce, len(workers)) {
		wg.Go(func() {
			for n := u.next(ctx, q); n != nil; n = u.next(ctx, q) {
				u.machine(ctx, p, n, q)
				if u.IsAside(n) && !u.isUntouched(n) && ctx.Err() == nil {
					q.failed(n)
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if broken := q.full(); broken != nil {
		u.holdBack(q.waiting, phases.PhaseKubelet, broken)
		return len(q.waiting) == 0, nil
	}
	return true, nil
}

// upgradeQueue holds the workers that wait for their upgrade and the workers that have failed. most is the number of failed workers that stops the
// upgrade.
type upgradeQueue struct {
	mu              sync.Mutex
	waiting, broken []*engine.Node
	most            int
}

func (q *upgradeQueue) failed(n *engine.Node) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.broken = append(q.broken, n)
}

// full returns the first failed worker if too many workers have failed, otherwise nil.
func (q *upgradeQueue) full() *engine.Node {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.broken) < q.most {
		return nil
	}
	return q.broken[0]
}

// next returns the next worker to upgrade. It prefers a worker that is already cordoned, and then a worker without jobs. It returns nil if no worker
// is waiting, or if too many workers have failed.
func (u *upgrade) next(ctx context.Context, q *upgradeQueue) *engine.Node {
	busy, err := u.busy(ctx, "")
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() != nil || len(q.waiting) == 0 || len(q.broken) >= q.most {
		return nil
	}
	i := 0
	if err == nil && !u.marked[q.waiting[0].Hostname] { // without a response, use the order of the layout
		i = max(0, slices.IndexFunc(q.waiting, func(n *engine.Node) bool { return len(busy[n.Hostname]) == 0 && !u.notReady[n.Hostname] }))
	}
	n := q.waiting[i]
	q.waiting = slices.Delete(slices.Clone(q.waiting), i, i+1)
	return n
}

// isUntouched reports whether the run has skipped a machine without a change.
func (u *upgrade) isUntouched(n *engine.Node) bool {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	return u.Run.Failed[n.Hostname].Untouched
}

// machine drains one machine, replaces its programs, and uncordons the machine.
func (u *upgrade) machine(ctx context.Context, p *engine.Plan, n *engine.Node, q *upgradeQueue) {
	fail := func(phase string, err error) {
		if engine.IsCancel(ctx, err) {
			if u.isOut(n) {
				u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phase, Message: "the machine stays cordoned until this command succeeds"})
			}
			return
		}
		u.Mu.Lock()
		out := u.out[n.Hostname] || u.marked[n.Hostname] && !u.putBack[n.Hostname]
		u.Mu.Unlock()
		if out {
			u.setOut(n, false)
			err = hint.Wrap(err, strings.TrimPrefix(hint.Of(err)+staysCordoned(n), "; "))
		}
		if phase == phaseDrain || phase == phaseUncordon { // the step itself has reported it
			u.SetAside(n, phase, err)
			return
		}
		u.tellFailed(n, phase, err)
	}
	changes := programs(p, n)
	if changes {
		err := tell(ctx, u.Run, n, phaseDrain, func(ctx context.Context, n *engine.Node) ([]engine.Change, error) { return u.empty(ctx, n, q) })
		if err != nil {
			fail(phaseDrain, u.backAgain(ctx, n, err))
			return
		}
		u.Mu.Lock()
		u.restarted[n.Hostname] = true
		u.Mu.Unlock()
		pr := engine.NewProgress(p, []*engine.Node{n})
		for _, ph := range phases.In(u.Want, engine.UpgradePrograms) {
			if err := u.Step(ctx, p, pr, n, ph); err != nil {
				fail(ph.Name(), err)
				return
			}
		}
	}
	if err := tell(ctx, u.Run, n, phaseUncordon, u.uncordonPatiently); err != nil {
		fail(phaseUncordon, err)
	}
}

// backAgain uncordons an unchanged machine if its pods could not be removed. An earlier run may have changed a part of a machine that it left
// cordoned. Such a machine stays cordoned, unless this run only waited for its jobs.
func (u *upgrade) backAgain(ctx context.Context, n *engine.Node, err error) error {
	waited := engine.Unchanged(err) || errors.As(err, new(*stoppedWaiting))
	if u.marked[n.Hostname] && !waited || engine.IsCancel(ctx, err) && !waited {
		return err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // also after Ctrl-C
	defer cancel()
	if _, back := u.uncordon(late, n); back != nil {
		return errors.Join(err, back)
	}
	u.Mu.Lock()
	u.putBack[n.Hostname] = true
	u.Mu.Unlock()
	return hint.Wrap(err, strings.TrimSuffix(hint.Of(err), toKeep(n)))
}

// patience is how long an upgrade tolerates an outage of the API, for example while the machine that serves the API restarts.
const patience = 5 * time.Minute

// uncordonPatiently calls uncordon again after errors, to tolerate a short outage of the API.
func (u *upgrade) uncordonPatiently(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	for end := time.Now().Add(patience); ; {
		cs, err := u.uncordon(ctx, n)
		if err == nil || !strings.Contains(err.Error(), "onnection") || time.Now().After(end) {
			return cs, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(u.opts.look):
		}
	}
}

// empty cordons a machine, treats its jobs according to the policy, and evicts its pods.
func (u *upgrade) empty(ctx context.Context, n *engine.Node, q *upgradeQueue) ([]engine.Change, error) {
	if err := u.cordon(ctx, n); err != nil {
		return nil, err
	}
	var stopped []engine.Change
	switch u.opts.Jobs {
	case JobsWait:
		if !u.notReady[n.Hostname] { // a dead kubelet doesn't report that tasks have finished
			if err := u.waitForJobs(ctx, n, q); err != nil {
				return nil, err
			}
		}
	case JobsStop:
		a, err := onLeader(ctx, u.Run, phaseUpgrade+"/stop", upgradeScript+fmt.Sprintf("NODE=%s\ng_stop\n", shell.Quote(n.Hostname)), 5*time.Minute)
		if err != nil {
			return nil, err
		}
		for _, row := range a.All("stopped") {
			stopped = append(stopped, engine.Change{Action: "stop", Target: "job " + strings.Join(row, "/")})
		}
	case JobsRequeue: // the eviction requeues them
	}
	cs, err := u.drain(ctx, n, u.opts.Force, u.opts.DrainTimeout)
	return append(stopped, cs...), err
}

// waitForJobs waits until no job has tasks on a machine. After a timeout, it returns an error, and the machine stays unchanged.
func (u *upgrade) waitForJobs(ctx context.Context, n *engine.Node, q *upgradeQueue) error {
	var limit <-chan time.Time
	if u.opts.MaxWait > 0 {
		limit = time.After(u.opts.MaxWait)
	}
	told, answered := "", time.Now()
	for {
		busy, err := u.busy(ctx, n.Hostname)
		switch {
		case err == nil:
			answered = time.Now()
		case ctx.Err() != nil:
			return &stoppedWaiting{context.Cause(ctx)}
		case time.Since(answered) > patience:
			return &stoppedWaiting{err}
		}
		jobs := slices.Sorted(maps.Keys(busy[n.Hostname]))
		if err == nil && len(jobs) == 0 {
			return nil
		}
		if text := someOf(jobs); err == nil && text != told {
			told = text
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phaseDrain, Message: "waits for the end of " + text,
				Hint: "--job-policy requeue has them begin again elsewhere instead; paictl job stop ends one"})
		}
		if broken := q.full(); broken != nil {
			return &notReached{failed: broken.Hostname}
		}
		select {
		case <-ctx.Done():
			return &stoppedWaiting{context.Cause(ctx)}
		case <-limit:
			return hint.Wrap(&stillBusy{limit: u.opts.MaxWait, jobs: told}, "run the same command again later; or with --job-policy requeue, or a longer --max-wait")
		case <-time.After(u.opts.look):
		}
	}
}

// stoppedWaiting is the error that ended the wait for the jobs of a machine. The machine is unchanged.
type stoppedWaiting struct{ error }

func (e *stoppedWaiting) Unwrap() error { return e.error }

// stillBusy is the error of a machine whose jobs didn't finish in time. The machine is unchanged.
type stillBusy struct {
	limit time.Duration
	jobs  string
}

func (*stillBusy) Unchanged() {}

func (e *stillBusy) Error() string {
	return fmt.Sprintf("not upgraded: after %s there still runs %s", e.limit, e.jobs)
}

func someOf(jobs []string) string {
	const most = 3
	text := strings.Join(jobs[:min(most, len(jobs))], ", ")
	if more := len(jobs) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// busy returns the jobs with unfinished tasks by machine. If host isn't empty, it returns only the jobs on that machine.
func (u *upgrade) busy(ctx context.Context, host string) (map[string]map[string]bool, error) {
	a, err := engine.Answer(u.Exec(ctx, u.Leader, ssh.Script{Name: phaseUpgrade + "/jobs", Timeout: 2 * time.Minute,
		Body: engine.PreludeScript + u.Spec.SelfAPI(u.Leader) + upgradeScript + "NODE=" + shell.Quote(host) + "\ng_busy\n"}))
	if err != nil {
		return nil, err
	}
	if a.Value("all") != "yes" {
		return nil, fmt.Errorf("%s's answer about its jobs is incomplete", u.Leader.Hostname)
	}
	out := map[string]map[string]bool{}
	for _, row := range a.All("task") {
		if len(row) < 3 || row[0] == "-" {
			continue
		}
		if out[row[0]] == nil {
			out[row[0]] = map[string]bool{}
		}
		out[row[0]][row[1]+"/"+row[2]] = true
	}
	return out, nil
}
