package logstore

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFrameWithoutTheTextOfASearchIsSkipped(t *testing.T) {
	for expression, want := range map[string]needle{
		"loss":             {[]byte("loss"), false},
		"(?i)Loss=NaN":     {[]byte("loss=nan"), true},
		`epoch \d+ of ten`: {[]byte(" of ten"), false},
		"(?i)zwölf":        {},
		"a|b":              {},
		"(error)?":         {},
		"x*":               {},
		"^$":               {},
	} {
		assert.Equal(t, want, needleOf(regexp.MustCompile(expression)), expression)
	}
	fold := needleOf(regexp.MustCompile("(?i)task")).missing()
	assert.True(t, fold([]byte("2026-03-01T12:00:00Z stdout F nothing\n")))
	for _, text := range []string{"a TaSk", "ta\u017fk", "tas\u212a", "x P y"} {
		assert.False(t, fold([]byte(text)), text)
	}
	assert.Nil(t, needleOf(regexp.MustCompile("a|b")).missing())
}
