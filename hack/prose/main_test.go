package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const idiom = "The key lies in a Secret. "

// repository creates a repository with files that git doesn't track yet, and with a baseline of the findings in these files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, exec.CommandContext(t.Context(), "git", "init", "-q", root).Run())
	write(t, root, ".gitignore", "ignored.md\n")
	write(t, root, filepath.Join("hack", "prose", "main.go"), "package main\n")
	for name, text := range files {
		write(t, root, name, text)
	}
	require.NoError(t, run(t.Context(), root, []string{"-init"}, nil))
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
}

func prose(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), root, args, &out)
	return out.String(), err
}

func entries(t *testing.T, root string) []string {
	t.Helper()
	out, err := readBaseline(filepath.Join(root, baselineFile))
	require.NoError(t, err)
	return out
}

func TestKnownFindingsPass(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom + idiom, "ignored.md": "It lies on a disk."})
	out, err := prose(t, root)
	require.NoError(t, err)
	assert.Equal(t, "prose: 0 new, 2 known (2 at the baseline)\n", out)
}

func TestANewFindingIsReportedWithItsPlace(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom})
	write(t, root, "b.md", "A line.\n\nThe run goes on.\n")
	out, err := prose(t, root)
	require.ErrorIs(t, err, errFindings)
	assert.Equal(t, "b.md:3: \"goes on\": write \"continues\": The run goes on.\nprose: 1 new, 1 known (1 at the baseline)\n", out)
}

func TestAMovedAndReflowedSentenceIsKnown(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom})
	require.NoError(t, os.Remove(filepath.Join(root, "a.md")))
	write(t, root, "pkg/b.go", "package b\n\n// The key lies\n// in a  Secret.\nvar b int\n")
	_, err := prose(t, root)
	require.NoError(t, err)
}

func TestAnEditedSentenceMustBecomePlain(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom})
	write(t, root, "a.md", "The new key lies in a Secret.")
	out, err := prose(t, root)
	require.ErrorIs(t, err, errFindings)
	assert.Contains(t, out, "a.md:1: \"lies\"")
}

func TestASecondCopyOfAKnownSentenceIsNew(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom})
	write(t, root, "b.md", idiom)
	out, err := prose(t, root)
	require.ErrorIs(t, err, errFindings)
	assert.Contains(t, out, "prose: 1 new, 1 known (1 at the baseline)")
}

func TestAnEntryThatIsNotFoundFailsTheCheck(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom})
	write(t, root, "a.md", "The key is in a Secret.")
	out, err := prose(t, root)
	require.ErrorIs(t, err, errFindings)
	assert.Contains(t, out, "1 entries are no longer found: run go run ./hack/prose -update")
}

func TestARemovedSentenceShrinksTheBaseline(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom + idiom + "The run goes on."})
	require.Len(t, entries(t, root), 3)
	write(t, root, "a.md", idiom)
	out, err := prose(t, root, "-update")
	require.NoError(t, err)
	assert.Equal(t, "prose: 0 new, 1 known (3 at the baseline)\n", out)
	assert.Len(t, entries(t, root), 1)
}

func TestAnUpdateNeverAddsAnEntry(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom + "The run goes on."})
	before := entries(t, root)
	write(t, root, "a.md", idiom+"The job goes on.")
	_, err := prose(t, root, "-update")
	require.ErrorIs(t, err, errFindings)
	after := entries(t, root)
	assert.Len(t, after, 1)
	assert.Subset(t, before, after)
}

func TestABaselineIsNeverReplaced(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom})
	_, err := prose(t, root, "-init")
	require.ErrorContains(t, err, "exists")
}

func TestAllFindingsOfAFileAreListed(t *testing.T) {
	root := repository(t, map[string]string{"docs/a.md": idiom, "docs/b.md": idiom, "c.md": "It is plain."})
	out, err := prose(t, root, "-all", "./docs", "c.md")
	require.ErrorIs(t, err, errFindings)
	assert.Contains(t, out, "docs/a.md:1: ")
	assert.Contains(t, out, "docs/b.md:1: ")
	assert.Contains(t, out, "prose: 2 findings\n")
	_, err = prose(t, root, "-all", "c.md")
	require.NoError(t, err)
	_, err = prose(t, root, "-all", "d.md")
	require.ErrorContains(t, err, "d.md")
}

func TestStatisticsCountByRuleAndArea(t *testing.T) {
	root := repository(t, map[string]string{"a.md": idiom, "a.go": "package a\n\n// It lies in a file.\nvar a = \"it lies in a file\"\n"})
	out, err := prose(t, root, "-stats")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^lies +1 +1 +1 +3$`, out)
}

func TestWrongArgumentsGetTheUsage(t *testing.T) {
	for _, args := range [][]string{{"-all"}, {"a.md"}, {"-other"}} {
		_, err := prose(t, t.TempDir(), args...)
		require.ErrorContains(t, err, "Usage:", args)
	}
	out, err := prose(t, t.TempDir(), "-h")
	require.NoError(t, err)
	assert.NotContains(t, out, "-init")
}

func TestALongSentenceIsCutInTheReport(t *testing.T) {
	f := finding{sentence: sentence{file: "a.md", line: 1, text: strings.Repeat("é", 101)}, found: "x", write: `"y"`}
	assert.Equal(t, `a.md:1: "x": write "y": `+strings.Repeat("é", 99)+"…", f.String())
	assert.Equal(t, "1,234,567", thousands(1234567))
	assert.Equal(t, "123", thousands(123))
}

func TestTheCheckItselfIsPlain(t *testing.T) {
	root := filepath.Join("..", "..")
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		found, err := find(allRules(t), root, []string{"hack/prose/" + name})
		require.NoError(t, err)
		assert.Empty(t, found)
	}
}
