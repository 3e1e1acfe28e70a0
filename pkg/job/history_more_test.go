package job

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// The test sends requests to the real server of the job controller.
func TestTheHistoryIsAskedForListsTagsCodeAndTheAudit(t *testing.T) {
	ctx := t.Context()
	s, err := archive.Open(ctx, archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	f := &v1.Framework{}
	f.Name, f.UID, f.CreationTimestamp = v1.ObjectName("ann", "train"), types.UID("u"), metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	f.Labels, f.Annotations = map[string]string{v1.LabelUser: "ann"}, map[string]string{v1.AnnotationJobName: "train", v1.AnnotationTags: "old"}
	require.NoError(t, s.SaveJob(ctx, f))
	require.NoError(t, s.EndRemoved(ctx, []string{"u"}))
	services := jobtest.Services{api.Service: server.New(server.Options{
		Store: s, Metrics: prometheus.NewRegistry(), Token: func() string { return jobtest.Token }, AuditToken: func() string { return jobtest.AuditToken }, Log: slog.New(slog.DiscardHandler),
	}).Handler()}
	c, cluster := onServer(t, services)

	page, err := c.History.Ordered(ctx, api.OrderedQuery{Users: []string{"ann"}, Visible: &api.Visibility{User: "ann"}, Order: api.OrderName, Limit: 5, Count: true})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.Equal(t, []string{"old"}, page.Items[0].Tags)
	assert.Equal(t, 1, *page.Total)

	tags, err := c.History.Tag(ctx, "u", "new", "a b")
	require.NoError(t, err)
	assert.Equal(t, []string{"a b", "new", "old"}, tags)
	tags, err = c.History.Untag(ctx, "u", "old")
	require.NoError(t, err)
	assert.Equal(t, []string{"a b", "new"}, tags)
	_, err = c.History.Tag(ctx, "another", "a")
	assert.True(t, apierrors.IsNotFound(err), "%v", err)

	sum := sha256.Sum256([]byte("code"))
	code := hex.EncodeToString(sum[:])
	owns := func(user string) bool {
		yes, err := c.History.OwnsCode(ctx, user, code)
		require.NoError(t, err)
		return yes
	}
	assert.False(t, owns("ann"))
	require.NoError(t, c.History.PutCode(ctx, "ann", code, 4, strings.NewReader("code")))
	assert.True(t, owns("ann"))
	assert.False(t, owns("mallory"))

	record := audit.Record{ID: strings.Repeat("x", 20), Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Actor: "ann", Verb: "stop", Kind: "job", Outcome: audit.Done}
	secrets := cluster.Client.CoreV1().Secrets(kube.SystemNamespace)
	require.NoError(t, secrets.Delete(ctx, api.AuditTokenSecret, metav1.DeleteOptions{}))
	err = c.History.SaveAudit(ctx, []audit.Record{record})
	require.Error(t, err, "there is no such Secret: it has no token")
	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.AuditTokenSecret}, StringData: map[string]string{api.TokenKey: jobtest.AuditToken}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c, _ = onServer(t, services)
	require.NoError(t, c.History.SaveAudit(ctx, []audit.Record{record}))
	records, err := c.History.Audit(ctx, audit.Query{Actor: "ann", Since: record.Time, Limit: 3})
	require.NoError(t, err)
	assert.Equal(t, []audit.Record{record}, records.Items)
}
