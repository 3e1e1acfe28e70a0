package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestUpMakesAClusterOfThreeMachines(t *testing.T) {
	l := newLab(t, 1, 2)
	s := time.Now()
	o := l.mustUp()
	t.Log(time.Since(s))
	s = time.Now()
	o = l.mustUp()
	t.Log(time.Since(s))
	assert.Empty(t, o.changes)
}
