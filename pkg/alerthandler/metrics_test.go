package alerthandler

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// A replica that no longer leads doesn't report the Actions that it counted as the leader. A replica that isn't ready reports the missing resources.
func TestAReplicaThatDoesntLead(t *testing.T) {
	h, err := New(Options{Config: &rest.Config{Host: "127.0.0.1:1"}, JobNamespace: "pai-jobs", Policies: &policy.Config{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	h.metrics.count([]*v1.Action{{Spec: v1.ActionSpec{Do: v1.OperationDrain}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Lead(ctx)
	all, err := h.metrics.registry.Gather()
	require.NoError(t, err)
	for _, m := range all {
		require.NotEqual(t, "pai_alert_handler_actions", m.GetName())
	}
	out := httptest.NewRecorder()
	h.handler(ServeOptions{}).ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
	require.Equal(t, 503, out.Code)
	require.Contains(t, out.Body.String(), "jobs, nodes, actions")
}
