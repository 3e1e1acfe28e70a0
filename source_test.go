package paictl

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// needed returns the files of this module that the go command compiles into the programs.
func needed(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("skipped: this machine has no go")
	}
	const format = `{{$dir := .ImportPath}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	files := []string{"go.mod", "go.sum"}
	list := func(cgo string, args ...string) {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", format}, args...)...)
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED="+cgo, "GOOS=linux")
		out, err := cmd.Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			if rest, ours := strings.CutPrefix(strings.TrimSpace(line), Module+"/"); ours {
				files = append(files, rest)
			}
		}
	}
	var programs []string
	for _, p := range Programs() {
		if p != "pai-scheduler" {
			programs = append(programs, "./cmd/"+p)
		}
	}
	list("0", programs...)
	list("1", "./cmd/pai-nvml")
	// It has the libraries of Kubernetes' release.
	list("0", "-modfile=cmd/pai-scheduler/kubernetes.mod", "-tags=pai_scheduler", "./cmd/pai-scheduler")
	return files
}

func TestTheEmbeddedSourceIsAllThatTheProgramsNeed(t *testing.T) {
	have := Source()
	for _, file := range needed(t) {
		_, ok := have[file]
		assert.True(t, ok, "%s: add its folder to the embedding in source.go", file)
	}
}

func TestTheEmbeddedSourceHoldsNoPackageThatNoProgramNeeds(t *testing.T) {
	var folders []string
	for _, file := range needed(t) {
		folders = append(folders, path.Dir(file))
	}
	for file := range Source() {
		assert.True(t, slices.Contains(folders, path.Dir(file)), "%s: remove its folder from the embedding in source.go", file)
	}
}

func TestTheEmbeddedSourceHoldsNoTest(t *testing.T) {
	for file := range Source() {
		assert.NotContains(t, file, "_test.go")
		assert.NotContains(t, file, "testdata")
	}
}

func TestPackedSourceIsTheSource(t *testing.T) {
	source := Source()
	archive, err := Pack(source)
	require.NoError(t, err)
	again, err := Pack(source)
	require.NoError(t, err)
	assert.Equal(t, archive, again, "releases are reproducible")
	have, err := Unpack(archive)
	require.NoError(t, err)
	assert.Equal(t, source, have)
	for _, bad := range [][]byte{[]byte("not an archive"), archive[:len(archive)/2]} {
		_, err := Unpack(bad)
		assert.Error(t, err, "%d bytes", len(bad))
	}
}
