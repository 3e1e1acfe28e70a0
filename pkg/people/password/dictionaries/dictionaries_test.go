package dictionaries_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/trustelem/zxcvbn/match"
	"github.com/trustelem/zxcvbn/matching"

	"github.com/openpai/paictl/pkg/people/password/dictionaries"
)

func isWord(m *match.Match) bool { return m.Pattern == "dictionary" }

func TestListsAreNotReadWhenAProgramStarts(t *testing.T) {
	assert.False(t, slices.ContainsFunc(matching.Omnimatch("password", nil), isWord), "package matching was initialized first, and has read the lists")
	var checks sync.WaitGroup
	for range 8 {
		checks.Go(func() {
			dictionaries.Load()
			assert.True(t, slices.ContainsFunc(matching.Omnimatch("password", nil), isWord))
		})
	}
	checks.Wait()
}
