package cmdutil

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVariablesHaveNoSpaceAroundTheirValues(t *testing.T) {
	t.Setenv("PAICTL_TOKEN", " x\r\n")
	t.Setenv("XDG_CONFIG_HOME", "a ")
	f := New("v1")
	assert.Equal(t, "x", f.Getenv("PAICTL_TOKEN"))
	assert.Equal(t, "a ", f.Getenv("XDG_CONFIG_HOME"), "it is another program's")
}
