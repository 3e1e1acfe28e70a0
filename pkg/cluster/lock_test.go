package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
)

// holding is a machine whose lock is free. The test can make the machine lose its lock.
type holding struct {
	ssh.Host
	lost, closed chan struct{}
}

func (h *holding) Hold(context.Context, ssh.Script) (ssh.Session, error) { return h, nil }
func (*holding) FirstLine() string                                       { return "held" }
func (h *holding) Done() <-chan struct{}                                 { return h.lost }
func (h *holding) Close() error                                          { close(h.closed); return nil }

func TestARunEndsOnceItsLocksKeepNoOtherOut(t *testing.T) {
	for _, c := range []struct{ masters, answer, most int }{
		{1, 1, 0}, {3, 3, 1}, {5, 5, 2}, {3, 2, 0}, {5, 4, 1}, {5, 2, 0}, // the number of locks that may be lost
	} {
		synctest.Test(t, func(t *testing.T) {
			s := preflightSpec(t, c.masters-1)
			r := engine.NewRun(s, engine.Options{Clock: time.Now, Owner: "ann"})
			var all []*holding
			for _, n := range s.Nodes {
				n.ControlPlane = true
				if len(all) < c.answer {
					all = append(all, &holding{lost: make(chan struct{}), closed: make(chan struct{})})
					r.Hosts[n.Hostname] = all[len(all)-1]
				}
			}
			held, release, err := r.Lock(t.Context())
			require.NoError(t, err)
			for i, h := range all {
				synctest.Wait()
				assert.Equal(t, i > c.most, held.Err() != nil, "%d of %d lost, %d masters", i, c.answer, c.masters)
				close(h.lost)
			}
			synctest.Wait()
			require.ErrorIs(t, context.Cause(held), engine.ErrLockLost)
			release()
			for _, h := range all {
				<-h.closed
			}
		})
	}
}
