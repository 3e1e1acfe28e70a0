package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

func TestATaskIsReadAsItIsWritten(t *testing.T) {
	want := spec.Task{Role: "worker", Index: 12, Attempt: 1, TaskAttempt: 3}
	got, err := spec.ParseTask(want.String())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	for _, wrong := range []string{"", "worker", "/1/2/3", "worker/1/2", "worker/1/2/3/4", "worker/x/2/3", "worker/-1/0/0"} {
		_, err := spec.ParseTask(wrong)
		require.Error(t, err, wrong)
	}
}
