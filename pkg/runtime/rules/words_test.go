package rules

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPhrasesAreWordsForPeople(t *testing.T) {
	for phrase, want := range map[string]string{
		"StopFrameworkRequested": "stopped", "ContainerMemoryOOMKilled": "container memory OOM killed", "ContainerGpuXidError": "container GPU XID error",
		"PAIRuntimeSSHBarrierTimeout": "PAI runtime SSH barrier timeout", "PodEvicted": "pod evicted", "ContainerCudaUncorrectableECCError": "container CUDA uncorrectable ECC error",
		"ContainerSigKillReceived": "container SIGKILL received", "ContainerSigvFault": "container sigv fault", "ContainerMPISegvFault": "container MPI segv fault",
		"ImagePullBackOff": "image can't be pulled", "OOMKilled": "OOM killed", "KubeletNotReady": "kubelet not ready",
		"ErrImageNeverPull": "image is not on the machine", "Unschedulable": "no node fits", "FailedScheduling": "not scheduled",
		"FailedCreatePodSandBox": "pod sandbox can't be created", "FailedMount": "failed mount",
		"": "", "my own words": "my own words", "ECC": "ECC", "A": "a", "endsInA": "ends in a", "Überlauf2": "überlauf2",
	} {
		assert.Equal(t, want, Words(phrase), phrase)
	}
}

func TestATermFollowsItsWords(t *testing.T) {
	for reason, want := range map[string]string{"ImagePullBackOff": "image can't be pulled (ImagePullBackOff)", "Evicted": "evicted", "Error": "error", "": ""} {
		assert.Equal(t, want, WithTerm(reason))
	}
}

func TestNoPhraseOfTheBuiltInRulesIsCamelCaseInWords(t *testing.T) {
	camel := regexp.MustCompile(`\b(\p{Lu}\p{Ll}+){2,}`)
	for _, r := range Builtin().Rules {
		w := Words(r.Phrase)
		assert.NotEmpty(t, w, r.Phrase)
		if w != "its ConfigMap was deleted" { // Kubernetes' own word
			assert.NotRegexp(t, camel, regexp.MustCompile("TensorFlow").ReplaceAllString(w, ""), r.Phrase)
		}
	}
}
