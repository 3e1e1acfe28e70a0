package cmdutil

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExplainedWordsStandBelowEachOther(t *testing.T) {
	assert.Equal(t, "  a     one\n  long  two", Explained([][2]string{{"a", "one"}, {"long", "two"}}))
	assert.Empty(t, Explained(nil))
}
