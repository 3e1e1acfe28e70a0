package idempotency_test

import (
	"crypto/sha256"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/server/idempotency"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

func TestAKeyIsOfOneSubmission(t *testing.T) {
	c := kubetest.Start(t)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	late := time.Duration(0)
	here, there := idempotency.New(c.Client, func() time.Time { return time.Now().Add(late) }), idempotency.New(c.Client, nil)
	one, other := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("other"))
	take := func(s *idempotency.Store, uid, key string, digest [32]byte) (*idempotency.Claim, error) {
		return s.Claim(t.Context(), "ann", types.UID(uid), key, digest)
	}
	claim, err := take(here, "1", "k", one)
	require.NoError(t, err)
	assert.Empty(t, claim.Answer)
	again, err := take(there, "1", "k", one)
	require.NoError(t, err)
	assert.Empty(t, again.Answer, "there is no answer yet: whoever asks goes on")
	_, err = take(there, "1", "k", other)
	require.ErrorIs(t, err, idempotency.ErrOther)
	require.NoError(t, here.Done(t.Context(), claim, "submitted"))
	again, err = take(there, "1", "k", one)
	require.NoError(t, err)
	assert.Equal(t, "submitted", again.Answer)

	require.NoError(t, here.Tidy(t.Context()))
	again, err = take(there, "1", "k", one)
	require.NoError(t, err)
	assert.Equal(t, "submitted", again.Answer, "it is young")
	late = idempotency.Life + time.Minute
	require.NoError(t, here.Tidy(t.Context()))
	claim, err = take(there, "1", "k", other)
	require.NoError(t, err, "it was forgotten")
	require.NoError(t, there.Release(t.Context(), again), "that was another claim")
	_, err = take(there, "1", "k", one)
	require.ErrorIs(t, err, idempotency.ErrOther)
	require.Error(t, there.Done(t.Context(), again, "x"), "so was this")
	require.NoError(t, there.Release(t.Context(), claim))

	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			_, err := here.Claim(t.Context(), "ann", "1", "at-once", one)
			assert.NoError(t, err)
		})
	}
	together.Wait()
}
