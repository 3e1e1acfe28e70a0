package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPhrasesAreWordsForPeople(t *testing.T) {
	for phrase, want := range map[string]string{
		"StopFrameworkRequested": "stopped", "ContainerMemoryOOMKilled": "container memory OOM killed", "ContainerGpuXidError": "container gpu xid error",
		"PAIRuntimeSSHBarrierTimeout": "PAI runtime SSH barrier timeout", "PodEvicted": "pod evicted", "ContainerCudaUncorrectableECCError": "container cuda uncorrectable ECC error",
		"": "", "my own words": "my own words", "ECC": "ECC", "A": "a", "endsInA": "ends in a", "Überlauf2": "überlauf2",
	} {
		assert.Equal(t, want, Words(phrase))
	}
}
