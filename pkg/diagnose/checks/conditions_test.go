package checks

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSomeConditionsOfNodesAreProblems(t *testing.T) {
	for kind, want := range map[string]string{
		"DiskPressure": "disk-space", "MemoryPressure": "kubectl top", "PIDPressure": "ps -e", "NetworkUnavailable": "pod network",
		"GPUsUnhealthy": "paictl node gpu reset", "GPUDriverMissingAtNextBoot": "paictl node driver upgrade",
		"KernelDeadlock": "kubectl describe node", "FrequentKubeletRestart": "dmesg", "NTPProblem": "dmesg",
	} {
		remedy, bad := Condition(kind)
		assert.True(t, bad, kind)
		assert.Contains(t, remedy, want, kind)
	}
	for _, kind := range []string{"Ready", "EtcdIsVoter", "CalicoReady"} {
		_, bad := Condition(kind)
		assert.False(t, bad, kind)
	}
}
