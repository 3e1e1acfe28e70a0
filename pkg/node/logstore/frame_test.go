package logstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// The last lines of a stream may be anywhere in a long log. Frames without lines of the stream are skipped without unpacking them.
func TestTheEndOfAStreamIsFoundWithoutUnpackingTheOther(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	taken := func() { l.round(); l.page(l.query("tail=0")) } // a query stores all lines so far, in a frame
	l.raw(stamp + " stderr F the first\n" + stamp + " stderr P half \n")
	taken()
	l.raw(stamp + " stderr F done\n")
	taken()
	for range 20 {
		l.print(100)
		taken()
	}
	x := l.store.find(uid, "app")
	require.NotNil(t, x)
	q := l.query("stream=stderr&tail=3")
	p, err := x.page(q)
	require.NoError(t, err)
	require.Len(t, p.frames, 2, "those of the other stream aren't read")
	var lines []string
	require.NoError(t, p.each(q, func(l logapi.Line) error { lines = append(lines, string(l.Text)); return nil }))
	assert.Equal(t, []string{"the first", "half done"}, lines)

	for _, place := range p.frames {
		n, err := (&Page{dir: "none"}).count(place, "stderr")
		require.NoError(t, err, "the file isn't opened")
		assert.Equal(t, int64(1), n)
		place.flags &^= flagCounted // as earlier versions wrote it
		n, err = p.count(place, "stderr")
		require.NoError(t, err)
		assert.Equal(t, int64(1), n)
		assert.False(t, place.without("stdout"))
	}
}

func TestWhatAFrameKnowsOfItsStreams(t *testing.T) {
	const stamp = "2026-01-01T00:00:00Z "
	for name, c := range map[string]struct {
		data        string
		stdout, err int64
		known       bool
	}{
		"both":                {stamp + "stdout F a\n" + stamp + "stderr F b\n" + stamp + "stdout F c\n", 2, 1, true},
		"parts":               {stamp + "stderr P a\n" + stamp + "stderr F b\n" + stamp + "stderr P c\n", 0, 1, true},
		"no lines of ours":    {"nonsense\n", 1, 0, true},
		"a stream unheard of": {stamp + "other F a\n", 0, 0, false},
	} {
		f := frame{}
		f.describe([]byte(c.data))
		for stream, want := range map[string]int64{"stdout": c.stdout, "stderr": c.err} {
			n, known := f.linesOf(stream)
			assert.Equal(t, c.known, known, name)
			assert.Equal(t, want, n, "%s: %s", name, stream)
		}
	}
}
