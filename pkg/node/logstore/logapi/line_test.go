package logapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALineArrivesAsItWasSent(t *testing.T) {
	const stamp = "2026-03-01T12:00:00.5Z"
	for name, c := range map[string]struct {
		line Line
		sent string
	}{
		"a line":                         {Line{stamp, []byte("a b")}, stamp + " a b\n"},
		"an empty one":                   {Line{stamp, []byte{}}, stamp + " \n"},
		"a carriage return":              {Line{stamp, []byte("a\r")}, stamp + " a\r\n"},
		"a space first":                  {Line{stamp, []byte(" a")}, stamp + "  a\n"},
		"no time":                        {Line{"", []byte("a b")}, " a b\n"},
		"no time, but a text with a one": {Line{"", []byte(stamp + " a")}, " " + stamp + " a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.sent, string(c.line.Append(nil, true)))
			var got []Line
			give := func(l Line) error { got = append(got, l); return nil }
			require.NoError(t, Read(strings.NewReader(c.sent), true, give))
			require.NoError(t, Read(strings.NewReader(string(c.line.Append(nil, false))), false, give))
			assert.Equal(t, []Line{c.line, {Text: c.line.Text}}, got)
		})
	}
	require.NoError(t, Read(strings.NewReader("no stamp"), true, func(l Line) error {
		assert.Equal(t, Line{Text: []byte("no stamp")}, l)
		return nil
	}))
}

func TestLinesOfMegabytesAreCut(t *testing.T) {
	var got []int
	require.NoError(t, Read(strings.NewReader(strings.Repeat("x", maxLine*2+5)+"\nend\r\n\n"), true, func(l Line) error {
		got = append(got, len(l.Text))
		return nil
	}))
	assert.Equal(t, len("end\r"), got[len(got)-2], "a carriage return is the program's")
	assert.Equal(t, 0, got[len(got)-1])
	for _, n := range got {
		assert.LessOrEqual(t, n, maxLine+64<<10)
	}
	stop := errors.New("stop")
	require.ErrorIs(t, Read(strings.NewReader("a\nb\n"), true, func(Line) error { return stop }), stop)
}
