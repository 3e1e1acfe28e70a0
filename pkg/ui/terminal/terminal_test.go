package terminal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ui/terminal"
)

func TestTextOfOthersStaysInItsLine(t *testing.T) {
	for in, want := range map[string]string{
		"raw\x1b[2J\x1b]0;name\a\nterm": "raw[2J]0;name term",
		"a\tb  c\r\nd":                  "a b c d",
		"\u202egnp.exe\u009b2J":         "gnp.exe2J",
		"bad\xff\x9bbytes":              "badbytes",
		"naïve 训练":                      "naïve 训练",
	} {
		assert.Equal(t, want, terminal.Line(in))
	}
	assert.Equal(t, "two_jobs", terminal.Word(" two\njobs "))
	assert.Equal(t, []string{"a[0m", "\tb"}, terminal.Lines("a\x1b[0m\r\n\tb\n"))
	assert.Equal(t, "a\n\tb", terminal.Text("a\a\n\tb\n"))
}

// hostile maps descriptions to texts, and to the parts of the texts that Colours and Plain pass.
var hostile = map[string]struct{ in, colours, plain string }{
	"text":                            {"hello\n", "hello\n", "hello\n"},
	"a colour":                        {"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m", "red"},
	"a colour of 24 bits":             {"\x1b[38:2::1:2:3mx", "\x1b[38:2::1:2:3mx", "x"},
	"a progress bar":                  {"10%\r20%\r\n", "10%\r20%\r\n", "10%20%\n"},
	"the cursor":                      {"a\x1b[2J\x1b[1;1Hb\x1b[Ac", "abc", "abc"},
	"the title":                       {"a\x1b]0;pwn\ab", "ab", "ab"},
	"the clipboard, ended by ST":      {"a\x1b]52;c;ZXZpbA==\x1b\\b", "ab", "ab"},
	"a device control string":         {"a\x1bP$q\"p\x1b\\b", "ab", "ab"},
	"a reset":                         {"a\x1bcb", "ab", "ab"},
	"another set of characters":       {"a\x1b(0b", "ab", "ab"},
	"a sequence of eight bits":        {"a\u009b2Jb\u009d0;x\u009cc", "abc", "abc"},
	"bytes that are no text":          {"a\x9b2Jb", "a\ufffd2Jb", "a\ufffd2Jb"},
	"a mode of xterm that ends in m":  {"a\x1b[>4;2mb\x1b[?4mc", "abc", "abc"},
	"a line's end in a sequence":      {"a\x1b[2\nJb", "a\nJb", "a\nJb"},
	"a line's end after escape":       {"a\x1b\n]0;x\ab", "a\n]0;xb", "a\n]0;xb"},
	"a string without an end":         {"a\x1b]0;x\nb", "a\nb", "a\nb"},
	"a sequence in a string":          {"a\x1b]0;x\x1b[31mb", "a\x1b[31mb", "ab"},
	"escape twice":                    {"a\x1b\x1b[31mb", "a\x1b[31mb", "ab"},
	"bells and steps back":            {"a\a\b\x7fb", "ab", "ab"},
	"text that runs from the right":   {"a\u202eb", "ab", "ab"},
	"characters of several bytes":     {"训\x1b[2J练", "训练", "训练"},
	"a colour whose end doesn't come": {"a\x1b[31", "a", "a"},
}

func TestOnlyColoursReachATerminal(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.in); size++ {
				var colours, plain bytes.Buffer
				a, b := terminal.Colours(&colours), terminal.Plain(&plain)
				for rest := []byte(c.in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
					for _, w := range []*terminal.Filter{a, b} {
						n, err := w.Write(rest[:min(size, len(rest))])
						require.NoError(t, err)
						assert.Equal(t, min(size, len(rest)), n)
					}
				}
				assert.Equal(t, c.colours, colours.String(), "in writes of %d bytes", size)
				assert.Equal(t, c.plain, plain.String(), "in writes of %d bytes", size)
			}
		})
	}
}

func TestAColourThatIsLeftOnEndsWithTheText(t *testing.T) {
	var b bytes.Buffer
	f := terminal.Colours(&b)
	require.NoError(t, f.Close())
	assert.Empty(t, b.String())
	_, err := f.Write([]byte("\x1b[8mhidden"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "\x1b[8mhidden\x1b[0m", b.String())
}

func TestABrokenStringHidesNoMoreThanItsBeginning(t *testing.T) {
	var b bytes.Buffer
	_, err := terminal.Plain(&b).Write([]byte("\x1b]" + strings.Repeat("x", 5000) + "end"))
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(b.String(), "xend"))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAnErrorOfTheTerminalIsReturned(t *testing.T) {
	_, err := terminal.Plain(full{}).Write([]byte("a"))
	require.EqualError(t, err, "full")
}

func FuzzFilter(f *testing.F) {
	for _, c := range hostile {
		f.Add([]byte(c.in), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		at = max(0, min(at, len(in)))
		var b bytes.Buffer
		p := terminal.Plain(&b)
		_, _ = p.Write(in[:at])
		_, _ = p.Write(in[at:])
		for _, r := range b.String() {
			if r != '\n' && r != '\t' && unicode.IsControl(r) {
				t.Fatalf("%q of %q", b.String(), in)
			}
		}
	})
}
