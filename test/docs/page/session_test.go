package page

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// play runs a page in a new folder. It returns the folder and the reports of the session.
func play(t *testing.T, text string) (dir, said string, err error) {
	t.Helper()
	dir = t.TempDir()
	s, err := Open(t.Context(), dir, os.Environ())
	require.NoError(t, err)
	defer s.Close()
	err = s.Play(Parse("p.md", text).Steps(), func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" })
	return dir, said, err
}

func console(text string) string { return "```console\n" + text + "```\n" }

func TestAPageIsPlayedInOneShell(t *testing.T) {
	dir, _, err := play(t, console("$ mkdir a && cd a\n$ export X=three\n$ cat > f <<'END'\none\ntwo $X\nEND\n")+
		"\nand then\n\n"+console("$ echo $X; cat f; cat\nthree\n…e\ntwo   $…\n"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "a", "f"))
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo $X\n", string(text))
}

func TestACommandThatFailsEndsThePage(t *testing.T) {
	_, said, err := play(t, console("$ echo oh; (exit 3)\n$ echo later\n"))
	require.EqualError(t, err, "p.md:2: echo oh; (exit 3): it ended with 3:\noh\n")
	assert.NotContains(t, said, "later")
	_, _, err = play(t, console("$ exit 3\n"))
	require.ErrorContains(t, err, "the shell ended")
}

func TestWhatThePageShowsHasToCome(t *testing.T) {
	_, _, err := play(t, console("$ printf 'a 1\\nb 2\\n'\nb  …\na  1\n"))
	require.ErrorContains(t, err, `the page shows "a  1"`)
	assert.Equal(t, "x.y", Missing([]string{"x.y"}, "xzy"))
	assert.Empty(t, Missing([]string{"NAME   STATE", "job/x   …"}, "NAME STATE\nother\njob/x   waiting   1"))
}

func TestMarksOfABlock(t *testing.T) {
	dir, _, err := play(t, "<!-- notrun: it is for others -->\n\n"+console("$ touch no\n")+
		"\n<!-- instead: echo x >>instead -->\n\n"+console("$ touch no\n$ touch no\n")+
		"\n<!-- before: touch before -->\n\n"+console("$ ls before\n$ rm before\n"))
	require.NoError(t, err)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(filepath.Join(dir, "instead"))
	require.NoError(t, err)
	assert.Equal(t, "x\n", string(text), "once for the block")
}
