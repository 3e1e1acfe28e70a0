package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBuiltInRulesHaveNothingWrong(t *testing.T) {
	s, findings := Parse(File, builtinText)
	require.Empty(t, findings)
	assert.Greater(t, len(s.Rules), 60)
	for _, r := range s.Rules {
		assert.NotEmpty(t, r.Reason, r.Phrase)
		if r.Type != "USER_SUCCESS" && r.Type != "USER_STOP" {
			assert.NotEmpty(t, r.Solution, r.Phrase)
		}
	}
}
