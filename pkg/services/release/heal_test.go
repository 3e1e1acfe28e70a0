package release

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

func TestARunThatWasCutOffAtAnyRequestIsContinued(t *testing.T) {
	w := newWorld(t)
	r := w.demo(map[string]any{"extra": true})
	w.apply(r)
	want := w.end()
	require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))

	for k := int32(0); ; k++ {
		require.Less(t, k, int32(40))
		broken, count := breaking(w.cluster, k)
		_, err := manager(t, broken).Apply(t.Context(), r)
		if err == nil && count() <= k {
			break
		}
		out := w.apply(r)
		if k > 0 {
			assert.Equal(t, Repaired, out.Action, "killed at request %d", k)
		}
		assert.Equal(t, want, w.end(), "killed at request %d", k)
		assert.Equal(t, Unchanged, w.apply(r).Action, "killed at request %d", k)
		require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
	}
}

func TestAnUpgradeThatWasCutOffIsContinued(t *testing.T) {
	w := newWorld(t)
	w.apply(w.demo(map[string]any{"greeting": "new", "replicas": 2}))
	want := w.end()
	for k := int32(0); ; k++ {
		require.Less(t, k, int32(40))
		w.apply(w.demo(nil))
		bad := w.demo(map[string]any{"extra": true, "replicas": 5, "env": []any{map[string]any{"name": "LEFT", "value": "over"}}})
		broken, count := breaking(w.cluster, k)
		_, err := manager(t, broken).Apply(t.Context(), bad)
		if err == nil && count() <= k {
			break
		}
		// The configuration differs from the configuration of the interrupted run. Objects that only the interrupted run created must be removed.
		out := w.apply(w.demo(map[string]any{"greeting": "new", "replicas": 2}))
		if k > 0 {
			assert.Equal(t, Repaired, out.Action, "killed at request %d", k)
		}
		assert.Equal(t, want, w.end(), "killed at request %d", k)
	}
}

func TestPendingStatesAreHealed(t *testing.T) {
	w := newWorld(t)
	for _, status := range []helmrelease.Status{
		helmrelease.StatusPendingInstall, helmrelease.StatusPendingUpgrade, helmrelease.StatusPendingRollback,
		helmrelease.StatusFailed, helmrelease.StatusUninstalling, helmrelease.StatusUnknown,
	} {
		for _, revisions := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s at revision %d", status, revisions), func(t *testing.T) {
				w := w
				w.T = t
				w.apply(w.demo(nil))
				if revisions == 2 {
					w.apply(w.demo(map[string]any{"replicas": 2}))
				}
				want := w.end()
				w.rewrite(revisions, status)
				out := w.apply(w.demo(map[string]any{"replicas": revisions}))
				assert.Equal(t, Repaired, out.Action)
				assert.Equal(t, want, w.end())
				require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))
			})
		}
	}
}

// rewrite sets the status of a revision, like a killed run.
func (w world) rewrite(revision int, status helmrelease.Status) {
	w.Helper()
	conn, err := connect(w.cluster, w.manager.(*helm).log)
	require.NoError(w, err)
	s, err := conn.session(w.Context(), w.namespace)
	require.NoError(w, err)
	store := s.helm().Releases
	r, err := store.Get("demo", revision)
	require.NoError(w, err)
	r.Info.Status = status
	require.NoError(w, store.Update(r))
}
