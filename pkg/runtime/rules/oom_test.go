package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The kernel killed a worker of the program, and then the program exited. containerd reports OOMKilled, but the exit code is
// the program's own code. Without paictl's runtime, the reason OOMKilled is the only sign of exhausted memory.
func TestOOMWithACodeOfTheProgramIsStillOOM(t *testing.T) {
	for _, code := range []int{1, 134, 139, 9, 143} {
		m := Builtin().ClassifyPod(Pod{Containers: []Container{{Name: "app", Code: code, Reason: "OOMKilled"}}})
		t.Logf("code %d: %d %v", code, m.Code, m.Rule)
		assert.Equal(t, -1200, m.Code, "code %d", code)
	}
}
