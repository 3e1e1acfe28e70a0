package iostreams

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLogsMayColourATerminalAndNotCommandIt(t *testing.T) {
	const said = "\x1b[31mred\x1b[0m \x1b]0;title\a\x1b[2Jgone\n"
	for name, c := range map[string]struct {
		tty, raw bool
		want     string
	}{
		"a terminal":           {true, false, "\x1b[31mred\x1b[0m gone\n\x1b[0m"},
		"a terminal, as it is": {true, true, said},
		"a pipe":               {false, false, said},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, out, _ := Test()
			s.SetTerminal(c.tty)
			w := s.Logs(c.raw)
			_, err := io.WriteString(w, said)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			assert.Equal(t, c.want, out.String())
		})
	}
}
