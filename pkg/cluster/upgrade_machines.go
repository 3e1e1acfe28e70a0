package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// jobsLook is how often an upgrade looks whether a machine's jobs have ended.
const jobsLook = 5 * time.Second

// machines upgrades the programs of all machines: the masters one by one, then some workers at once, those first that have no jobs.
func (u *upgrade) machines(ctx context.Context, w *world) error {
	p, err := u.plan(w, u.alive(u.spec.Nodes), u.phasesOfPrograms())
	if err != nil {
		return err
	}
	u.planned = p
	masters, workers := u.due(w, p)
	for _, n := range masters {
		u.machine(ctx, p, n)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if u.isAside(n) && !u.isUntouched(n) {
			u.holdBack(workers, phaseKubelet, n)
			return nil
		}
	}
	q := &upgradeQueue{waiting: workers}
	var wg sync.WaitGroup
	for range min(u.opts.AtOnce, len(workers)) {
		wg.Go(func() {
			for n := u.next(ctx, q); n != nil; n = u.next(ctx, q) {
				u.machine(ctx, p, n)
				if u.isAside(n) && !u.isUntouched(n) && ctx.Err() == nil {
					q.failed(n)
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(q.broken) >= u.opts.MaxFailures {
		u.holdBack(q.waiting, phaseKubelet, q.broken[0])
	}
	return nil
}

// upgradeQueue are the workers whose turn is yet to come, and those that failed.
type upgradeQueue struct {
	mu              sync.Mutex
	waiting, broken []*Node
}

func (q *upgradeQueue) failed(n *Node) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.broken = append(q.broken, n)
}

// next takes the worker whose turn it is: one that is out of service already, else one without jobs, else the first. Nil: there is none, or too many
// have failed.
func (u *upgrade) next(ctx context.Context, q *upgradeQueue) *Node {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() != nil || len(q.waiting) == 0 || len(q.broken) >= u.opts.MaxFailures {
		return nil
	}
	i := 0
	if !u.marked[q.waiting[0].Hostname] {
		// Without an answer the order is that of the layout.
		if busy, err := u.busy(ctx); err == nil {
			i = max(0, slices.IndexFunc(q.waiting, func(n *Node) bool { return len(busy[n.Hostname]) == 0 }))
		}
	}
	n := q.waiting[i]
	q.waiting = slices.Delete(slices.Clone(q.waiting), i, i+1)
	return n
}

// isUntouched reports whether a machine that was set aside is as it was.
func (u *upgrade) isUntouched(n *Node) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.run.failed[n.Hostname].Untouched
}

// machine takes one machine out of service, replaces its programs, and puts it back.
func (u *upgrade) machine(ctx context.Context, p *plan, n *Node) {
	fail := func(phase string, err error) {
		if isCancel(ctx, err) {
			if u.isOut(n) {
				u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phase, Message: "the machine stays cordoned until this command succeeds"})
			}
			return
		}
		if u.isOut(n) || u.marked[n.Hostname] {
			u.setOut(n, false)
			err = hint.Wrap(err, strings.TrimPrefix(hint.Of(err)+"; the machine stays cordoned until this command succeeds; to use it as it is: kubectl uncordon "+n.Hostname, "; "))
		}
		u.tellFailed(n, phase, err)
	}
	changes := len(p.of(n, phaseContainerd))+len(p.of(n, phaseKubelet)) > 0
	if changes {
		if err := u.tell(ctx, n, phaseDrain, u.empty); err != nil {
			if !isCancel(ctx, err) && !u.marked[n.Hostname] { // nothing is changed on the machine, and it goes on working
				if _, back := u.uncordon(ctx, n); back == nil {
					err = hint.Wrap(err, strings.TrimSuffix(hint.Of(err), "; to keep the node: kubectl uncordon "+n.Hostname))
				}
			}
			fail(phaseDrain, err)
			return
		}
		u.mu.Lock()
		u.restarted[n.Hostname] = true
		u.mu.Unlock()
		pr := newProgress(p, []*Node{n})
		for _, ph := range u.phasesOfPrograms() {
			if err := u.step(ctx, p, pr, n, ph); err != nil {
				fail(ph.name(), err)
				return
			}
		}
	}
	if err := u.tell(ctx, n, phaseUncordon, u.uncordon); err != nil {
		fail(phaseUncordon, err)
	}
}

// empty takes a machine out of service, and has its jobs leave as the policy says, and then its pods.
func (u *upgrade) empty(ctx context.Context, n *Node) ([]Change, error) {
	if err := u.cordon(ctx, n); err != nil {
		return nil, err
	}
	var stopped []Change
	switch u.opts.Jobs {
	case JobsWait:
		if err := u.waitForJobs(ctx, n); err != nil {
			return nil, err
		}
	case JobsStop:
		a, err := u.onLeader(ctx, phaseUpgrade+"/stop", upgradeScript+fmt.Sprintf("NODE=%s\ng_stop\n", shell.Quote(n.Hostname)), 5*time.Minute)
		if err != nil {
			return nil, err
		}
		for _, row := range a.All("stopped") {
			stopped = append(stopped, Change{Action: "stop", Target: "job " + strings.Join(row, "/")})
		}
	case JobsRequeue: // eviction does it
	}
	cs, err := u.drain(ctx, n, u.opts.Force, u.opts.DrainTimeout)
	return append(stopped, cs...), err
}

// waitForJobs waits until no job has tasks on a machine. Where that takes too long, the machine is left as it is.
func (u *upgrade) waitForJobs(ctx context.Context, n *Node) error {
	var limit <-chan time.Time
	if u.opts.MaxWait > 0 {
		limit = time.After(u.opts.MaxWait)
	}
	told := ""
	for {
		busy, err := u.busy(ctx)
		if err != nil {
			return err
		}
		jobs := slices.Sorted(maps.Keys(busy[n.Hostname]))
		if len(jobs) == 0 {
			return nil
		}
		if text := someOf(jobs); text != told {
			told = text
			u.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phaseDrain, Message: "waits for the end of " + text,
				Hint: "--job-policy requeue has them begin again elsewhere instead; paictl job stop ends one"})
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit:
			return hint.Wrap(&stillBusy{limit: u.opts.MaxWait, jobs: told}, "run the same command again later; or with --job-policy requeue, or a longer --max-wait")
		case <-time.After(u.opts.look):
		}
	}
}

// stillBusy says that jobs haven't ended in time, and that nothing was changed on their machine.
type stillBusy struct {
	limit time.Duration
	jobs  string
}

func (*stillBusy) leftAlone() {}

func (e *stillBusy) Error() string {
	return fmt.Sprintf("not upgraded: after %s there still runs %s", e.limit, e.jobs)
}

// someOf names a few jobs.
func someOf(jobs []string) string {
	const most = 3
	text := strings.Join(jobs[:min(most, len(jobs))], ", ")
	if more := len(jobs) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// busy are the machines with tasks that haven't ended, each with the jobs to which they belong.
func (u *upgrade) busy(ctx context.Context) (map[string]map[string]bool, error) {
	res, err := u.exec(ctx, u.leader, ssh.Script{Name: phaseUpgrade + "/jobs", Timeout: 2 * time.Minute,
		Body: preludeScript + selfAPI(u.spec, u.leader) + upgradeScript + "g_busy\n"})
	if err != nil {
		return nil, err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return nil, err
	}
	if a.Value("all") != "yes" {
		return nil, fmt.Errorf("%s's answer about its jobs ends too early", u.leader.Hostname)
	}
	out := map[string]map[string]bool{}
	for _, row := range a.All("task") {
		if len(row) < 4 || row[0] == "-" {
			continue
		}
		if out[row[0]] == nil {
			out[row[0]] = map[string]bool{}
		}
		out[row[0]][row[1]+"/"+row[2]] = true
	}
	return out, nil
}
