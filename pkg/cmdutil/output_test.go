package cmdutil

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

// evil is a name that moves the cursor and adds a row to a table.
const evil = "raw\x1b[2J\u009b5m\u202e\x7f\nforged\trow"

func TestNamesForgeNoRowsAndCommandNoTerminal(t *testing.T) {
	table := Table{Header: []string{"NAME", "X"}, Rows: [][]string{{evil, "1"}, {"b", evil}}}
	for format, want := range map[string]string{
		"table": "NAME                  X\nraw[2J5m forged row   1\nb                     raw[2J5m forged row\n",
		"name":  "raw[2J5m_forged_row\nb\n",
	} {
		var b bytes.Buffer
		require.NoError(t, (&Output{format: format}).Write(&b, nil, table))
		assert.Equal(t, want, b.String(), format)
	}
}

func TestJSONKeepsWhatItEscapes(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&Output{format: "json"}).Write(&b, map[string]string{"name": evil}, Table{}))
	assert.Contains(t, b.String(), `"raw\u001b[2J\u009b5m\u202e\u007f\nforged\trow"`)
	var got map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	assert.Equal(t, evil, got["name"])
	b.Reset()
	require.NoError(t, (&Output{format: "yaml"}).Write(&b, map[string]string{"name": evil}, Table{}))
	assert.NotContains(t, b.String(), "\x1b")
	assert.NotContains(t, b.String(), "\u009b")
}

func TestErrorsCommandNoTerminal(t *testing.T) {
	var b bytes.Buffer
	PrintError(&b, hint.Wrap(errors.New("there is no \x1b]0;x\arole"), "there are: \x1b[2Ja"))
	assert.Equal(t, "paictl: there is no ]0;xrole\n  -> there are: [2Ja\n", b.String())
}

// An error about a local file gets a remedy if it doesn't have a remedy yet. An error about a file on another machine doesn't get a remedy.
func TestFilesThatCannotBeReadHaveARemedy(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("folder", 0o700))
	printed := func(err error) string {
		var b bytes.Buffer
		PrintError(&b, fmt.Errorf("read the trace: %w", err))
		return b.String()
	}
	_, missing := os.Open("none.csv")
	assert.Equal(t, "paictl: read the trace: open none.csv: no such file or directory\n  -> correct the path; it is looked up in the current folder\n", printed(missing))
	_, missing = os.ReadFile("/none/at/all")
	assert.Contains(t, printed(missing), "\n  -> correct the path\n")
	_, folder := os.ReadFile("folder")
	assert.Contains(t, printed(folder), "\n  -> it must be a file, not a folder")
	assert.NotContains(t, printed(&fs.PathError{Op: "open", Path: "folder", Err: fs.ErrNotExist}), "->", "it is there: the error is of another machine")
	assert.Contains(t, printed(hint.Wrap(missing, "make one")), "\n  -> make one\n")
}

// screen runs a function that writes to a terminal with the given number of columns, and returns the lines that it wrote.
func screen(t *testing.T, columns uint16, run func(*os.File)) []string {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	require.NoError(t, pty.Setsize(slave, &pty.Winsize{Cols: columns, Rows: 24}))
	run(slave)
	fmt.Fprintln(slave, "END")
	defer slave.Close()
	var lines []string
	for s := bufio.NewScanner(master); s.Scan() && s.Text() != "END"; {
		lines = append(lines, s.Text())
	}
	return lines
}

func TestTablesFitTheTerminalAndStayWholeElsewhere(t *testing.T) {
	long := strings.Repeat("a", 120) + "-end"
	table := Table{Header: []string{"NAME", "STATE", "NOTE"}, Rows: [][]string{
		{long, "running", "it waits for nothing, and has all that it asked for of the machines"},
		{"訓練用のジョブの名前がとても長い場合でも列は揃います二十", "waiting", "-"},
	}}
	var pipe bytes.Buffer
	require.NoError(t, (&Output{format: "table"}).Write(&pipe, nil, table))
	assert.Contains(t, pipe.String(), long+"   running")
	assert.NotContains(t, pipe.String(), "…")
	for _, columns := range []uint16{40, 60, 80, 133} {
		lines := screen(t, columns, func(f *os.File) { require.NoError(t, (&Output{format: "table"}).Write(f, nil, table)) })
		require.Len(t, lines, 3)
		for _, l := range lines {
			assert.LessOrEqual(t, ansi.StringWidth(l), int(columns), l)
		}
		state := func(line, word string) int {
			before, _, _ := strings.Cut(line, word)
			return ansi.StringWidth(before)
		}
		assert.Equal(t, state(lines[0], "STATE"), state(lines[1], "running"))
		assert.Equal(t, state(lines[0], "STATE"), state(lines[2], "waiting"), "wide characters take two places")
		assert.Regexp(t, `^a+…a*-end  running  it waits.*…$`, lines[1], "a name loses its middle, a text its end")
	}
	lines := screen(t, 80, func(f *os.File) { require.NoError(t, (&Output{format: "wide"}).Write(f, nil, table)) })
	assert.Contains(t, lines[1], long+"   running")
	assert.NotContains(t, strings.Join(lines, ""), "…")
}

func TestColumnsGoOnlyWhereNoneCanBeNarrower(t *testing.T) {
	table := Table{Header: []string{"NAME", "STATE", "VC", "SUBMITTED", "DURATION"}, Rows: [][]string{{"train-the-model-again", "running", "default", "12m ago", "3h5m"}}}
	lines := screen(t, 34, func(f *os.File) { require.NoError(t, table.write(f, 34)) })
	assert.Equal(t, []string{"NAME              STATE    VC", "train-th…l-again  running  default", "(no room for SUBMITTED, DURATION: -o wide)"}, lines)
	lines = screen(t, 5, func(f *os.File) { require.NoError(t, table.write(f, 5)) })
	assert.Equal(t, "tr…in", lines[1])
	ragged := Table{Rows: [][]string{{"a"}, {strings.Repeat("b", 30), strings.Repeat("c", 30), "d"}, {}}}
	lines = screen(t, 20, func(f *os.File) { require.NoError(t, ragged.write(f, 20)) })
	assert.Equal(t, []string{"a", "bbbb…bbbb  cccc…cccc", ""}, lines, "rows of any length")
}

func TestAgesAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 40 * time.Second: "40s", 12 * time.Minute: "12m", 90 * time.Minute: "1h", 47 * time.Hour: "47h", 50 * time.Hour: "2d",
	} {
		assert.Equal(t, want, Age(d))
	}
}
