package assembly_test

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/assembly"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

func TestAServerEndsWhenWhatItLeadsHasEnded(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	const namespace = "default"
	leads, finished := make(chan struct{}), atomic.Bool{}
	a, err := assembly.New(assembly.Options{Config: c.Config, Settings: settings.Default(), HistoryURL: "http://127.0.0.1:1", SchedulerURL: "http://127.0.0.1:1", SystemNamespace: namespace, Identity: "one",
		Audit: io.Discard, Log: slog.New(slog.DiscardHandler), Leading: func(ctx context.Context) {
			close(leads)
			<-ctx.Done()
			// Leading ends after all other parts, because it waits until the lease is released.
			assert.Eventually(t, func() bool {
				lease, err := c.Client.CoordinationV1().Leases(namespace).Get(context.WithoutCancel(ctx), assembly.Lease, metav1.GetOptions{})
				return err == nil && *lease.Spec.HolderIdentity == ""
			}, 30*time.Second, 200*time.Millisecond)
			finished.Store(true)
		}})
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- assembly.Together(ctx, a.Parts()...) }()
	<-leads
	end()
	require.NoError(t, <-ended)
	assert.True(t, finished.Load(), "an answer of an issuer that comes late is kept, too")
}
