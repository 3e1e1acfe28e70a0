package jobtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// Token is the token for the history in tests.
const Token = "test"

// AuditToken is the token for the audit in tests.
const AuditToken = "the audit's"

const (
	pollEvery = 50 * time.Millisecond
	pollFor   = time.Minute
)

// SetStatus writes a Framework's status, as the job controller does.
func SetStatus(t testing.TB, c *kube.Cluster, name string, s *v1.FrameworkStatus) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	patch, err := json.Marshal(map[string]any{"status": s})
	require.NoError(t, err)
	_, err = client.Resource(v1.Resource).Namespace(kube.JobNamespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// Framework reads a Framework with all its tasks.
func Framework(t testing.TB, c *kube.Cluster, name string) *v1.Framework {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	u, err := client.Resource(v1.Resource).Namespace(kube.JobNamespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	data, err := u.MarshalJSON()
	require.NoError(t, err)
	f := &v1.Framework{}
	require.NoError(t, json.Unmarshal(data, f))
	return f
}
