package controller

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestAJobHasAnOwnerInTheMetricsUntilItIsCompleted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	require.NoError(t, err)
	r := &reconciler{metrics: m}
	r.entries.m, r.entries.begun = map[string]*entry{}, map[string]bool{}
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Labels: map[string]string{v1.LabelUser: "ann", v1.LabelVC: "vision"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}}}
	e, err := r.entry(t.Context(), f)
	require.NoError(t, err)
	has := func(want string) {
		t.Helper()
		if want != "" {
			want = "# HELP pai_controller_job_info Frameworks that aren't completed, and whose they are, as labels.\n# TYPE pai_controller_job_info gauge\n" + want + "\n"
		}
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "pai_controller_job_info"))
	}
	has("")
	const one = `pai_controller_job_info{framework="f",job_name="train",user="ann",vc="vision"} 1`
	r.count(e, v1.AttemptRunning)
	has(one)
	r.count(e, v1.Completed)
	has("")
	r.count(e, v1.AttemptCreationPending) // a retry
	has(one)
	r.count(e, "")
	has("")
}
