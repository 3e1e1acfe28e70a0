package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
)

// newSteps returns an upgrade of a master and two workers. They are members of the cluster and record their scripts.
func newSteps(t *testing.T) (u *upgrade, w *engine.World, hosts map[string]*noting) {
	t.Helper()
	s := preflightSpec(t, 2)
	r := engine.NewRun(s, engine.Options{Clock: time.Now, Sink: &sink{}, NoPeers: true})
	r.Leader = s.Nodes[0]
	u = &upgrade{rotation: newRotation(r, phaseUpgrade, upgradeMark), notReady: map[string]bool{}, putBack: map[string]bool{}}
	member, err := answer.Parse([]byte("member\tyes\n"))
	require.NoError(t, err)
	w, hosts = &engine.World{Want: s.Fresh(), Facts: map[string]*engine.Facts{}, Leader: r.Leader}, map[string]*noting{}
	for _, n := range s.Nodes {
		w.Facts[n.Hostname] = &engine.Facts{Sections: map[string]answer.Answer{engine.PhaseJoin: member}}
		hosts[n.Hostname] = &noting{}
		r.Hosts[n.Hostname] = hosts[n.Hostname]
	}
	return u, w, hosts
}

func TestAnUpgradeChangesNothingWhereAMachineDidNotGetItsImages(t *testing.T) {
	u, w, hosts := newSteps(t)
	hosts["w1"].full = errors.New("the disk is full")
	require.NoError(t, u.all(t.Context(), w))
	assert.Equal(t, "the disk is full", u.Run.Failed["w1"].Error)
	for _, name := range []string{"m1", "w2"} {
		assert.Equal(t, []string{"images/import"}, hosts[name].names, name)
		assert.Equal(t, "not upgraded: the upgrade of w1 has failed", u.Run.Failed[name].Error)
		assert.True(t, u.Run.Failed[name].Untouched)
	}
}

func TestAMachineThatDidNotBecomeEmptyIsPutBackUnlessItMayBeHalfUpgraded(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		marked, back bool
	}{
		"its pods are stuck":                            {errors.New("stuck"), false, true},
		"so they are after an interrupted run":          {errors.New("stuck"), true, false},
		"its jobs still run":                            {&stillBusy{}, false, true},
		"so they do after an interrupted run":           {&stillBusy{}, true, true},
		"someone ended the wait":                        {&stoppedWaiting{context.Canceled}, true, true},
		"someone ended it while its pods were to leave": {context.Canceled, false, false},
	} {
		u, w, hosts := newSteps(t)
		n := w.Want.Nodes[1]
		u.marked[n.Hostname] = c.marked
		require.ErrorIs(t, u.backAgain(t.Context(), n, c.err), c.err, name)
		assert.Equal(t, c.back, u.putBack[n.Hostname], name)
		var want []string
		if c.back {
			want = []string{"upgrade/uncordon"}
		}
		assert.Equal(t, want, hosts["m1"].names, name)
	}
}

func TestNoWorkerBeginsOnceTooManyHaveFailed(t *testing.T) {
	u, w, hosts := newSteps(t)
	hosts["m1"].says = "all\tyes\n"
	q := &upgradeQueue{waiting: w.Want.Nodes[1:], most: 2}
	q.failed(w.Want.Nodes[1])
	assert.Nil(t, q.full())
	assert.NotNil(t, u.next(t.Context(), q))
	q.failed(w.Want.Nodes[2])
	assert.Equal(t, w.Want.Nodes[1], q.full())
	assert.Nil(t, u.next(t.Context(), q))
	assert.Len(t, q.waiting, 1)
}

func TestAWorkerWithoutJobsIsTheNext(t *testing.T) {
	u, w, hosts := newSteps(t)
	hosts["m1"].says = "task\tw1\tpai-jobs\tann~train\nall\tyes\n"
	q := &upgradeQueue{waiting: w.Want.Nodes[1:], most: 1}
	assert.Equal(t, "w2", u.next(t.Context(), q).Hostname)
	assert.Equal(t, "w1", u.next(t.Context(), q).Hostname)
	assert.Nil(t, u.next(t.Context(), q))
}

type noting struct {
	ssh.Host
	says  string // the output of each
	full  error  // of uploads
	names []string
	body  string // of the last
}

func (h *noting) Run(_ context.Context, s ssh.Script) (ssh.Result, error) {
	h.names, h.body = append(h.names, s.Name), s.Body
	return ssh.Result{Stdout: []byte(h.says)}, nil
}

func (h *noting) Upload(context.Context, []ssh.File, func(sent, total int64)) (ssh.UploadResult, error) {
	return ssh.UploadResult{}, h.full
}
