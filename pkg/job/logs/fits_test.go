package logs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOfALongLineTheBeginningIsSearched(t *testing.T) {
	o := Options{Match: regexp.MustCompile("needle"), MatchBytes: 4 << 10}
	assert.True(t, o.fits([]byte(strings.Repeat("x", 4000)+"needle")))
	assert.False(t, o.fits([]byte(strings.Repeat("x", 4<<10)+"needle")))
	o.MatchBytes = 0
	assert.True(t, o.fits([]byte(strings.Repeat("x", 1<<20)+"needle")), "a person's own program searches all of it")
}
