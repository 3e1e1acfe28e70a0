package logstore

import (
	"net/url"
	"regexp"
	"testing"
	"time"

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

func TestASearchForTheReplacementCharacterFindsBytesThatAreNoUTF8(t *testing.T) {
	l := newLab(t)
	l.raw(l.now.Format(time.RFC3339Nano) + " stdout F caf\xe9 au lait\n")
	l.rotate()
	l.round()
	for _, expression := range []string{"caf\ufffd", "\ufffd au", "(?i)CAF\ufffd"} {
		assert.True(t, regexp.MustCompile(expression).MatchString("caf\xe9 au lait"), "that is how Go matches")
		assert.Len(t, l.search("match="+url.QueryEscape(expression)).Items, 1, expression)
	}
}
