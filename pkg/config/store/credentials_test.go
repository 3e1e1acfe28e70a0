package store

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestTheSecretKeepsWhatRevisionsNameAndWhatIsBeingPushed(t *testing.T) {
	old := &corev1.Secret{Data: map[string][]byte{
		"r3-a.json": []byte("named"), "r4-b.json": []byte("named"), "r4-c.json": []byte("of a push that lost"),
		"r5-d.json": []byte("of a push that runs now"), "other": []byte("not ours"),
	}}
	history := []Revision{{Number: 4, Credentials: "r4-b.json"}, {Number: 3, Credentials: "r3-a.json"}, {Number: 2}}
	got, kept, err := withEntry(old, "r5-e.json", []byte("new"), 4, history)
	require.NoError(t, err)
	assert.Equal(t, history, kept)
	assert.Equal(t, []string{"r3-a.json", "r4-b.json", "r5-d.json", "r5-e.json"}, slices.Sorted(maps.Keys(got.Data)))
	assert.Len(t, old.Data, 5, "what was read is not touched")
}

func TestWherePasswordsDontFitTheOldestRevisionsGo(t *testing.T) {
	large := []byte(strings.Repeat("x", 400<<10))
	old := &corev1.Secret{Data: map[string][]byte{"r1-a.json": large, "r2-b.json": large}}
	history := []Revision{{Number: 2, Credentials: "r2-b.json"}, {Number: 1, Credentials: "r1-a.json"}}
	got, kept, err := withEntry(old, "r3-c.json", large, 2, history)
	require.NoError(t, err)
	assert.Equal(t, history[:1], kept)
	assert.Equal(t, []string{"r2-b.json", "r3-c.json"}, slices.Sorted(maps.Keys(got.Data)))

	_, _, err = withEntry(nil, "r1-a.json", make([]byte, maxObject), 0, nil)
	require.EqualError(t, err, "the passwords have 1024 KiB when compressed, but Kubernetes stores at most 1024 KiB in one Secret")
}

func TestADiffOfLongFilesHasTheRightNumbers(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, strings.Repeat("l", i))
	}
	a := strings.Join(lines, "\n") + "\n"
	lines[50] = "changed"
	b := strings.Join(lines, "\n") + "\nat the end"
	diff := unified([]byte(a), []byte(b), "a", "b")
	assert.Contains(t, diff, "@@ -48,7 +48,7 @@\n")
	assert.Contains(t, diff, "@@ -98,3 +98,4 @@\n")
	assert.Contains(t, diff, "+at the end\n\\ No newline at end of file\n")
	assert.Contains(t, unified(nil, []byte("x\n"), "a", "b"), "@@ -0,0 +1 @@\n+x\n")
}

func TestADiffNamesLineEndsInsteadOfAllLines(t *testing.T) {
	copyOf := func(text string) *Copy {
		files := map[string][]byte{"layout.yaml": []byte(text)}
		return &Copy{Files: files, shown: files}
	}
	unix, windows := copyOf("a: 1\nb: 2\n"), copyOf("\ufeffa: 1\r\nb: 2\r\n")
	got := changes(unix, windows, "cluster/", "folder/")
	require.Len(t, got, 1)
	assert.Equal(t, "\\ cluster/layout.yaml has the line ends of Unix (LF), folder/layout.yaml has line ends of Windows (CRLF) and a byte order mark\n", got[0].Diff)
	got = changes(unix, copyOf("a: 1\r\nb: 3\r\n"), "cluster/", "folder/")
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Diff, " a: 1\n-b: 2\n+b: 3\n\\ cluster/")
}
