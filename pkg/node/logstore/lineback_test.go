package logstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestALineIsReadBackwards(t *testing.T) {
	text := strings.Repeat("0123456789", 100)
	for _, longest := range []int{1, 7, 10, 999, 1000, 5000} {
		for _, piece := range []int{1, 3, 10, 1000} {
			l := &lineBack{longest: longest}
			size := 0
			for end := len(text); end > 0; end -= piece {
				size += l.prepend([]byte(text[max(0, end-piece):end]))
				assert.LessOrEqual(t, l.held, longest+piece, "the rest is given up")
			}
			whole := l.whole()
			assert.Equal(t, text[:min(longest, len(text))], string(whole.Text), "%d in pieces of %d", longest, piece)
			assert.Equal(t, len(whole.Text), size)
		}
	}
}
