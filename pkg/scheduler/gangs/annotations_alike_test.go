package gangs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// One gang is rejected because its own annotations are long. Other gangs with the same shape must start.
func TestLongAnnotationsKeepNoOtherGangFromStarting(t *testing.T) {
	c := newCluster(t, twoTeams)
	long := newPod("long", spec("A", 1, "long:1:1"))
	long.Annotations["example.org/notes"] = strings.Repeat("x", 250<<10)
	long = c.create(long)
	require.Contains(t, c.waits(long), "too large")
	c.place(c.create(newPod("other", spec("A", 1, "other:1:1"))))
}
