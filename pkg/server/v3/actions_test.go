package v3

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func TestPhasesOfAQuery(t *testing.T) {
	for _, p := range actionsv1.Phases() {
		got, err := readPhases([]string{p.String()})
		require.NoError(t, err)
		assert.Equal(t, []actionsv1.Phase{p}, got)
	}
	got, err := readPhases([]string{"new", "acting"})
	require.NoError(t, err)
	assert.Equal(t, []actionsv1.Phase{actionsv1.PhaseNew, actionsv1.PhaseActing}, got)
	_, err = readPhases([]string{""})
	require.ErrorContains(t, err, `"phase" must be New, Pending`)
}

func TestAnActionHasTheNamesOfTheAPI(t *testing.T) {
	at := metav1.NewTime(time.Unix(100, 0))
	a := &actionsv1.Action{ObjectMeta: metav1.ObjectMeta{Name: "reset-gpu-1", CreationTimestamp: at}, Spec: actionsv1.ActionSpec{Do: actionsv1.OperationResetGPU,
		Machine: &actionsv1.Machine{Name: "gpu-1", UID: "u", GPU: new(int32)}, NotAfter: at}, Status: actionsv1.ActionStatus{StartTime: &at}}
	got := api.ActionOf(a)
	assert.Equal(t, "New", got.Phase)
	assert.False(t, got.Final())
	assert.Equal(t, a.Spec.Target(), got.Target())
	assert.Equal(t, at.UTC(), *got.Started)
	assert.Nil(t, got.Ended)
	a.Spec.Machine, a.Spec.Job, a.Status.Phase = nil, &actionsv1.Job{Name: "ann/train"}, actionsv1.PhaseExpired
	got = api.ActionOf(a)
	assert.Equal(t, "ann/train", got.Target())
	assert.True(t, got.Final())
}

func TestSecondsOfARequestDontOverflow(t *testing.T) {
	assert.Equal(t, 90*time.Second, seconds(90))
	assert.Negative(t, seconds(math.MinInt64))
	assert.Equal(t, time.Duration(math.MaxInt64), seconds(math.MaxInt64))
}
