package version

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTagIsOneThatImagesMayHave(t *testing.T) {
	was := Version
	t.Cleanup(func() { Version = was })
	Version = "v0.1.0-dev+b04802d-dirty"
	assert.Regexp(t, `^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`, Tag())
}
