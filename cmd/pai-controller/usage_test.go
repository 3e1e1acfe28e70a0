package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestWhoHoldsGPUsIsToldByWhoLeads(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 10, 0, 0, time.UTC)
	store, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db"), Now: func() time.Time { return now }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	f := &v1.Framework{}
	f.Name, f.UID, f.CreationTimestamp = "f", types.UID("f"), metav1.NewTime(now.Add(-time.Hour))
	f.Labels, f.Annotations = map[string]string{v1.LabelUser: "ann", v1.LabelVC: "vision"}, map[string]string{v1.AnnotationJobName: "train"}
	uid := "pod"
	f.Status = &v1.FrameworkStatus{State: v1.AttemptRunning}
	f.Status.AttemptStatus.TaskRoleStatuses = []*v1.TaskRoleStatus{{Name: "worker", TaskStatuses: []*v1.TaskStatus{{AttemptStatus: v1.TaskAttemptStatus{
		PodName: "f-worker-0", PodUID: &uid, GPUs: &v1.TaskGPUs{Count: 2, Type: "H100", Opportunistic: true, Since: metav1.NewTime(now.Add(-20 * time.Minute))},
	}}}}}
	require.NoError(t, store.SaveHolds(t.Context(), f))

	leads := false
	r := prometheus.NewRegistry()
	tellUsage(r, store, func() bool { return leads }, slog.New(slog.DiscardHandler))
	n, err := testutil.GatherAndCount(r)
	require.NoError(t, err)
	require.Zero(t, n, "another replica tells it")

	leads = true
	u := &usage{store: store, leads: func() bool { return true }, log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	tells := func(seconds string) {
		t.Helper()
		require.NoError(t, testutil.CollectAndCompare(u, strings.NewReader(`
# HELP pai_gpu_seconds_total GPU time since midnight, UTC: eight GPUs held for a minute are 480 seconds.
# TYPE pai_gpu_seconds_total counter
pai_gpu_seconds_total{opportunistic="true",type="H100",user="ann",vc="vision"} `+seconds+`
# HELP pai_task_gpus GPUs that a task holds.
# TYPE pai_task_gpus gauge
pai_task_gpus{job_name="train",opportunistic="true",task_pod="f-worker-0",type="H100",user="ann",vc="vision"} 2
`)))
	}
	tells("1200") // only of the current day
	now = now.Add(5 * time.Minute)
	require.NoError(t, store.SaveHolds(t.Context(), f))
	tells("1800")
}
