package config

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/config/store"
)

func TestTheMessageOfARollbackIsCutBetweenCharacters(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"none":                            {"", "rollback to revision 7"},
		"short":                           {"because", "rollback to revision 7: because"},
		"as long as fits":                 {strings.Repeat("x", 976), "rollback to revision 7: " + strings.Repeat("x", 976)},
		"too long":                        {strings.Repeat("x", 1000), "rollback to revision 7: " + strings.Repeat("x", 976)},
		"too long by half of a character": {strings.Repeat("x", 975) + "é", "rollback to revision 7: " + strings.Repeat("x", 975)},
		"characters of many bytes":        {strings.Repeat("機", 333), "rollback to revision 7: " + strings.Repeat("機", 325)},
	} {
		t.Run(name, func(t *testing.T) {
			got := rollbackMessage(&RollbackOptions{Revision: 7, Message: tc.message})
			assert.Equal(t, tc.want, got)
			assert.True(t, utf8.ValidString(got))
			assert.LessOrEqual(t, len(got), store.MaxMessage)
		})
	}
}
