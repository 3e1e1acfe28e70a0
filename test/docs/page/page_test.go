package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const example = "# Title\n\nUse this page to see\nhow.\n\n" +
	"    paictl a b  [-o DIR]     what it does\n    paictl c 'x  y' | paictl d\n\n" +
	"<!-- unchecked: it is a sketch -->\n\n```yaml\na: 1\n```\n\n" +
	"```console\n$ cat > job.yaml <<'END'\nname: x\nEND\n$ paictl job list \\\n    -o json\nNAME  …\n[…]\nx\n$ true\n```\n\n" +
	"Also `paictl job\nwhy x` and [there](other.md#a-b) but `[not](this)`.\n\n## A *b*, c\n"

func TestBlocksOfAPageAreFoundWithTheirMarks(t *testing.T) {
	p := Parse("p.md", example)
	require.Len(t, p.Blocks, 3)
	assert.Equal(t, "p.md:6", p.Blocks[0].Place())
	assert.Equal(t, Block{Page: "p.md", Line: 12, Lang: "yaml", Text: "a: 1\n", Marks: map[string]string{"unchecked": "it is a sketch"}}, p.Blocks[1])
	assert.Empty(t, p.Blocks[2].Marks, "a mark is for one block")
	assert.Equal(t, map[string]string{"job.yaml": "name: x\n"}, p.Blocks[2].Inputs())
	assert.Equal(t, "Use this page to see how.", p.Begins())
}

func TestCommandsOfABlockAreReadAsTheShellDoes(t *testing.T) {
	calls, err := Parse("p.md", example).Blocks[0].Calls("paictl")
	require.NoError(t, err)
	var got [][]string
	for _, c := range calls {
		got = append(got, c.Args)
	}
	assert.Equal(t, [][]string{{"a", "b", "-o", "DIR"}, {"c", "x  y"}, {"d"}}, got)
	assert.Equal(t, 7, calls[1].Line)
	_, err = Block{Page: "p.md", Text: "paictl 'open\n"}.Calls("paictl")
	require.ErrorContains(t, err, "p.md:0: paictl 'open")
}

func TestOtherLinesAreNoCommands(t *testing.T) {
	calls, err := Block{Text: "log   paictl job logs x\n# paictl config push\nsystemctl start paictl-certificates.service\n"}.Calls("paictl")
	require.NoError(t, err)
	assert.Empty(t, calls)
	calls, err = Block{Text: "make build && bin/paictl version\n$ sudo paictl sandbox up\n"}.Calls("paictl")
	require.NoError(t, err)
	assert.Len(t, calls, 2)
}

func TestCommandsInSentencesMayBreakALine(t *testing.T) {
	calls := Parse("p.md", example).Inline("paictl")
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"job", "why", "x"}, calls[0].Args)
}

func TestStepsOfAConsoleHaveTheirInputAndOutput(t *testing.T) {
	steps := Parse("p.md", example).Steps()
	require.Len(t, steps, 3)
	assert.Equal(t, "cat > job.yaml <<'END'\nname: x\nEND", steps[0].Command)
	assert.Equal(t, "paictl job list \\\n    -o json", steps[1].Command)
	assert.Equal(t, []string{"NAME  …", "x"}, steps[1].Shows)
	assert.Equal(t, 19, steps[1].Line)
	assert.Equal(t, "true", steps[2].Command)
}

func TestLinksAndAnchors(t *testing.T) {
	p := Parse("p.md", example)
	require.Len(t, p.Links(), 1)
	assert.Equal(t, "other.md#a-b", p.Links()[0].Target)
	assert.Equal(t, "other.md#a-b)", p.Text[p.Links()[0].At:][:len("other.md#a-b)")])
	assert.Equal(t, []string{"title", "a-b-c"}, p.Anchors())
}
