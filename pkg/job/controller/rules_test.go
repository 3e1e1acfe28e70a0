package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

func TestRulesOfTheAdministratorReachJobsAndBadOnesDoNot(t *testing.T) {
	w := begin(t)
	const good = "- code: 77\n  phrase: Seventy\n  behavior: TRANSIENT\n  reaction: ALWAYS_RETRY\n"
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: controller.RulesConfigMap, Namespace: w.namespace}, Data: map[string]string{rules.Key: good}}
	require.NoError(t, w.c.Create(t.Context(), cm))
	copied := func() string {
		c := &corev1.ConfigMap{}
		if !w.get(c, spec.RulesConfigMap) {
			return ""
		}
		return c.Data[rules.Key]
	}
	w.eventually("the rules are copied to the jobs", func() bool { return copied() == good })
	w.submit("ruled", workers(1))
	w.exits("ruled-worker-0", 77)
	w.until("ruled", "is retried by the new rule", func(f *v1.Framework) bool { return f.Status.AttemptStatus.ID == 1 })

	cm.Data[rules.Key] = "- code: [77\n"
	require.NoError(t, w.c.Update(t.Context(), cm))
	w.eventually("an event says that they are refused", func() bool {
		events := &corev1.EventList{}
		require.NoError(t, w.c.List(t.Context(), events, client.InNamespace(w.namespace)))
		for _, e := range events.Items {
			if e.Reason == "RulesRefused" {
				return true
			}
		}
		return false
	})
	assert.Equal(t, good, copied(), "the last good ones stay")
	require.NoError(t, w.c.Delete(t.Context(), cm))
	w.eventually("without rules the built-in ones hold", func() bool { return copied() == "" })
}
