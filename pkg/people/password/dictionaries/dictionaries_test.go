package dictionaries_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/trustelem/zxcvbn/matching"

	"github.com/openpai/paictl/pkg/people/password/dictionaries"
)

func TestListsAreNotReadWhenAProgramStarts(t *testing.T) {
	lists := dictionaries.Lists()
	require.NotEmpty(t, lists["passwords"])
	assert.Equal(t, "123456", lists["passwords"][0])
	for _, m := range matching.Omnimatch("password", nil) {
		assert.NotEqual(t, "dictionary", m.Pattern, "package matching was initialized first, and has read the lists")
	}
}
