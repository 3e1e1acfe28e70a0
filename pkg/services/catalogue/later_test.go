package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhichPaictlIsNewer(t *testing.T) {
	assert.True(t, LaterPaictl("v0.3.0", "v0.2.9"))
	assert.True(t, LaterPaictl("v0.3.0", "v0.3.0-dev+1234567"))
	assert.False(t, LaterPaictl("v0.2.0", "v0.2.0"))
	assert.False(t, LaterPaictl("v0.1.0-dev+aaaa", "v0.1.0-dev+bbbb"), "builds have no order")
	assert.False(t, LaterPaictl("", "v0.2.0"))
	assert.False(t, LaterPaictl("unknown", "v0.2.0"))
}
