package main_test

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxSize is the maximum size of the program in bytes. The size matters, because an init container copies the program into every pod.
const maxSize = 12 << 20

var folder string // of the program that is tested

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "pai-runtime-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// build builds the program as for its image, and returns its path.
func build(t *testing.T) string {
	t.Helper()
	name := filepath.Join(folder, "pai-runtime")
	if _, err := os.Stat(name); err == nil {
		return name
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return name
}

func TestTheProgramIsSmallAndStaticAndWithoutKubernetes(t *testing.T) {
	name := build(t)
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(maxSize))
	t.Logf("%.1f MB", float64(info.Size())/(1<<20))

	f, err := elf.Open(name)
	require.NoError(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err == nil {
		assert.Empty(t, libraries)
	}
	for _, p := range f.Progs {
		assert.NotEqual(t, elf.PT_INTERP, p.Type, "it needs no loader of the image")
	}

	b, err := buildinfo.ReadFile(name)
	require.NoError(t, err)
	for _, d := range b.Deps {
		for _, no := range []string{"k8s.io/", "sigs.k8s.io/", "helm.sh/", "github.com/spf13/"} {
			assert.False(t, strings.HasPrefix(d.Path, no), "%s", d.Path)
		}
	}
}

func TestTheProgramInstallsItself(t *testing.T) {
	name, dir := build(t), filepath.Join(t.TempDir(), "pai")
	for range 2 {
		out, err := exec.Command(name, "install", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Empty(t, out)
	}
	out, err := exec.Command(filepath.Join(dir, "runtime"), "version").Output()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(out), "pai-runtime v"), "%s", out)
}

func TestWhatIsNotUnderstoodIsSaid(t *testing.T) {
	name := build(t)
	for _, args := range [][]string{nil, {"runn"}, {"install"}, {"exec", "ls"}, {"exec", "--"}, {"run", "x"}} {
		cmd := exec.Command(name, args...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		assert.Equal(t, 2, cmd.ProcessState.ExitCode())
		assert.Contains(t, string(out), "pai-runtime install FOLDER")
	}
	out, err := exec.Command(name, "--help").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "pai-runtime run")
}
