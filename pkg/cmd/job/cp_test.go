package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/transfer"
)

func TestTheSideInTheTaskIsFound(t *testing.T) {
	for text, want := range map[string][2]string{
		"train:/out": {"train", "/out"}, "ann/train:x": {"ann/train", "x"}, "ann~train:x:y": {"ann~train", "x:y"}, "train:": {"train", ""},
	} {
		name, path, ok := remote(text)
		require.True(t, ok, text)
		assert.Equal(t, want, [2]string{name, path}, text)
	}
	for _, text := range []string{"file", "./a:b", "/a:b", "../a:b", "a/b/c:d", ":x", ""} {
		_, _, ok := remote(text)
		assert.False(t, ok, text)
	}
}

func TestCopiesLandWhereCpPutsThem(t *testing.T) {
	for name, c := range map[string]struct {
		to     string
		kind   transfer.Kind
		folder bool
		dir    string
		as     string
	}{
		"into a folder":         {"/a/b", transfer.Folder, false, "/a/b", "src"},
		"under a new name":      {"/a/b", transfer.None, false, "/a", "b"},
		"over a file":           {"/a/b", transfer.File, false, "/a", "b"},
		"into a new folder":     {"/a/b", transfer.None, true, "/a/b", "src"},
		"here, under a name":    {"b", transfer.None, false, ".", "b"},
		"into the folder as is": {".", transfer.Folder, false, ".", "src"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, as := destination(c.to, c.kind, "src", c.folder)
			assert.Equal(t, [2]string{c.dir, c.as}, [2]string{dir, as})
		})
	}
}

func TestTasksAndPortsAreReadAsPeopleWriteThem(t *testing.T) {
	role, index, err := parseTask("", "worker[3]")
	require.NoError(t, err)
	assert.Equal(t, "worker", role)
	assert.EqualValues(t, 3, index)
	role, index, err = parseTask("worker", "2")
	require.NoError(t, err)
	assert.Equal(t, "worker", role)
	assert.EqualValues(t, 2, index)
	_, index, err = parseTask("worker", "")
	require.NoError(t, err)
	assert.EqualValues(t, -1, index)
	for _, c := range [][2]string{{"", "x"}, {"boss", "worker[1]"}, {"", "-1"}} {
		_, _, err = parseTask(c[0], c[1])
		require.Error(t, err, c)
	}
	for text, want := range map[string]struct {
		local  int
		remote string
	}{"6006": {-1, "6006"}, "8080:http": {8080, "http"}, "0:22": {0, "22"}, "ssh": {-1, "ssh"}} {
		local, remote, err := splitPort(text)
		require.NoError(t, err)
		assert.Equal(t, want.local, local)
		assert.Equal(t, want.remote, remote)
	}
	for _, text := range []string{"", ":", "8080:", "x:80", "70000", "0", "-5:80", "99999:80"} {
		_, _, err := splitPort(text)
		require.Error(t, err, text)
	}
}
