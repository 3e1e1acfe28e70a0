package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/tier"
)

// A released paictl and a paictl that "go build" has built must render a chart that calls all methods in the same way.
func TestChartsRenderAsWithGoBuild(t *testing.T) {
	tier.More(t, "the program itself, built twice")
	t.Setenv("CGO_ENABLED", "0") // as in a build of a release; the race detector's step sets 1, and then the linker keeps all methods
	plain, packed := programs.Program(t, "paictl"), filepath.Join(t.TempDir(), "paictl")
	t.Cleanup(programs.Clean)
	require.NoError(t, run(t.Context(), []string{"-buildvcs=false", "-ldflags=-s -w", "-o", packed, "github.com/openpai/paictl/cmd/paictl"}))
	size := func(program string) int64 {
		info, err := os.Stat(program)
		require.NoError(t, err)
		return info.Size()
	}
	require.Less(t, size(packed), size(plain)*4/5, "the linker keeps the methods of all types")

	home := t.TempDir()
	render := func(program string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Run(), "paictl %v: %s", args, &errs)
		return out.String()
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, "quick-start.yaml"), []byte("machines: [10.0.0.1]\nssh-password: hunter2\n"), 0o600))
	render(plain, "config", "generate", "-i", "quick-start.yaml", "-o", "c", "--offline")
	chart, err := fs.Sub(os.DirFS("testdata"), "chart")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(home, "c", "reach"), chart))
	file, err := os.OpenFile(filepath.Join(home, "c", "services-configuration.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("\nreach:\n  chart: ./reach\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	want := render(plain, "service", "template", "-n", "reach", "-p", "c")
	require.Contains(t, want, "kubernetes: v")
	require.Equal(t, want, render(packed, "service", "template", "-n", "reach", "-p", "c"))
}
