package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// server returns a real API server without a configuration, and its store. Tests that use it must not run in parallel.
func server(t *testing.T) (*kube.Cluster, *store.Store) {
	t.Helper()
	c := kubetest.Start(t)
	clean := func() {
		ctx := context.WithoutCancel(t.Context())
		for _, err := range []error{
			c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			c.Client.CoreV1().Secrets(kube.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}
	clean()
	t.Cleanup(clean)
	return c, newStore(c.Client)
}

// Ten folders with the same base are pushed at the same time, each with a different password. Exactly one push succeeds, and the cluster stores the
// files and the password of this push.
func TestOfPushesAtOnceOnARealServerExactlyOneWins(t *testing.T) {
	for name, first := range map[string]bool{"the first push": true, "a later push": false} {
		t.Run(name, func(t *testing.T) {
			cluster, s := server(t)
			var b *store.Base
			if !first {
				b = base(mustPush(t, s, store.Candidate{Files: files(t)}))
			}
			const pushers = 10
			results := make([]error, pushers)
			won := make([]store.Revision, pushers)
			var all sync.WaitGroup
			start := make(chan struct{})
			for i := range pushers {
				f := edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", fmt.Sprintf("hunter2-number-%d", i))
				f = edit(t, f, config.LayoutFile, "username: ubuntu", fmt.Sprintf("username: user%d", i))
				all.Go(func() {
					mine := newStore(cluster.Client)
					d, err := mine.Draft(t.Context(), store.Candidate{Files: f, Base: b})
					<-start
					if err == nil {
						won[i], err = mine.Push(t.Context(), d, store.Entry{By: fmt.Sprintf("user%d@desk", i)})
					}
					results[i] = err
				})
			}
			close(start)
			all.Wait()
			winner := -1
			for i, err := range results {
				if err == nil {
					assert.Equal(t, -1, winner, "two pushes won")
					winner = i
					continue
				}
				assert.True(t, errors.Is(err, store.ErrChanged) || strings.Contains(err.Error(), "this folder is not based on") || strings.Contains(err.Error(), "was changed since"), err.Error())
			}
			require.GreaterOrEqual(t, winner, 0, "no push won: %v", results)
			loaded, r, err := s.Load(t.Context())
			require.NoError(t, err)
			assert.Equal(t, won[winner].Number, r.Number)
			assert.Equal(t, fmt.Sprintf("hunter2-number-%d", winner), loaded.Layout.SSH.Password.Reveal())
			assert.Equal(t, fmt.Sprintf("user%d", winner), loaded.Layout.SSH.Username)
		})
	}
}

// Readers must never get the files of one push with the passwords of another push.
func TestReadersOfARealServerNeverMixRevisions(t *testing.T) {
	cluster, s := server(t)
	var b *store.Base
	done := make(chan error, 1)
	pushAll := func() error {
		for i := range 25 {
			f := edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", fmt.Sprintf("hunter2-of-user%d", i))
			f = edit(t, f, config.LayoutFile, "username: ubuntu", fmt.Sprintf("username: user%d", i))
			r, err := push(t.Context(), s, store.Candidate{Files: f, Base: b}, "ada@desk")
			if err != nil {
				return err
			}
			b = base(r)
		}
		return nil
	}
	b = base(mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", "hunter2-of-ubuntu")}))
	go func() { done <- pushAll() }()
	reader := store.New(cluster.Client)
	for reads := 0; ; reads++ {
		loaded, _, err := reader.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, "hunter2-of-"+loaded.Layout.SSH.Username, loaded.Layout.SSH.Password.Reveal())
		select {
		case err := <-done:
			require.NoError(t, err)
			t.Logf("%d reads during 25 pushes", reads)
			return
		default:
		}
	}
}

func TestARealServerKeepsTenRevisionsAndNoSecretInTheOpen(t *testing.T) {
	cluster, s := server(t)
	var b *store.Base
	for i := range 12 {
		r := mustPush(t, s, store.Candidate{Files: edit(t, files(t), config.LayoutFile, "hunter2-of-ssh", fmt.Sprintf("hunter2-of-%d", i)), Base: b})
		b = base(r)
	}
	maps, err := cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for i := range maps.Items {
		names = append(names, maps.Items[i].Name)
		for _, secret := range secrets {
			assert.NotContains(t, maps.Items[i].String(), secret)
		}
	}
	assert.ElementsMatch(t, []string{"pai-configuration", "pai-configuration-r3", "pai-configuration-r4", "pai-configuration-r5", "pai-configuration-r6",
		"pai-configuration-r7", "pai-configuration-r8", "pai-configuration-r9", "pai-configuration-r10", "pai-configuration-r11"}, names)

	d, err := s.RollbackDraft(t.Context(), 3)
	require.NoError(t, err)
	_, err = s.Push(t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(t, err)
	loaded, r, err := s.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 13, r.Number)
	assert.Equal(t, "hunter2-of-2", loaded.Layout.SSH.Password.Reveal())
}

func TestFiveThousandMachinesFitIntoARealServer(t *testing.T) {
	_, s := server(t)
	f := edit(t, files(t), config.KubernetesFile, "10.244.0.0/16", "10.64.0.0/10")
	f[config.LayoutFile] = manyMachines(f[config.LayoutFile], 5000)
	r := mustPush(t, s, store.Candidate{Files: f})
	for range 2 { // with all passwords changed each time
		f[config.LayoutFile] = []byte(strings.ReplaceAll(string(f[config.LayoutFile]), "      password: ", "      password: x"))
		r = mustPush(t, s, store.Candidate{Files: f, Base: base(r)})
	}
	c, err := s.Pull(t.Context())
	require.NoError(t, err)
	assert.Equal(t, string(f[config.LayoutFile]), string(c.Files[config.LayoutFile]))
	history, err := s.History(t.Context())
	require.NoError(t, err)
	assert.Len(t, history, 3)
	for _, h := range history {
		_, err := s.At(t.Context(), h.Number)
		require.NoError(t, err, "revision %d", h.Number)
	}
}
