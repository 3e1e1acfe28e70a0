package barrier

import (
	"context"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

// refusing rejects requests until a point in time, and then returns the peers.
type refusing struct {
	until time.Time
	data  []byte
}

func (r *refusing) watch(_ context.Context, _ time.Duration, opened func(), found func([]byte) bool) (bool, error) {
	if time.Now().Before(r.until) {
		return false, fs.ErrNotExist
	}
	opened()
	return found(r.data), nil
}

func (*refusing) close()       {}
func (*refusing) name() string { return "the source" }

func TestARefusalMayPassWithinAMinute(t *testing.T) {
	data, err := peers.Encode(workers(2, 3))
	require.NoError(t, err)
	for lasts, code := range map[time.Duration]int{refusedFor - 2*maxBackoff: 0, 2 * refusedFor: exit.BarrierPermanent} {
		synctest.Test(t, func(t *testing.T) {
			w := &Wait{Source: &refusing{time.Now().Add(lasts), data}, Attempt: 2, Role: "worker", PodIP: address(0), Log: func(string, ...any) {}}
			_, err := w.For(t.Context())
			assert.Equal(t, code, exit.Code(err), "%s: %v", lasts, err)
		})
	}
}
