package noquery

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProgramsThatAreStartedSeeTheUsersTerminal(t *testing.T) {
	assert.Equal(t, "screen", os.Getenv(variable))
	t.Setenv(variable, "screen") // brings it back
	Over()
	now, there := os.LookupEnv(variable)
	assert.Equal(t, terminal, now)
	assert.Equal(t, isSet, there)
	for _, set := range []bool{true, false} {
		terminal, isSet = "", set
		Over()
		_, there = os.LookupEnv(variable)
		assert.Equal(t, set, there)
	}
}
