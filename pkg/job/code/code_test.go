package code

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	runtimecode "github.com/openpai/paictl/pkg/runtime/code"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
}

func pack(t *testing.T, dir string) *Archive {
	t.Helper()
	a, err := Pack(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

func names(t *testing.T, a *Archive) []string {
	t.Helper()
	z, err := gzip.NewReader(a.Content())
	require.NoError(t, err)
	var out []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, h.Name)
	}
}

func TestWhatGitignoreNamesStaysAtHome(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".gitignore": "*.ckpt\r\n/data/\n!keep.ckpt\n# comment\n\n**/cache\n", "train.py": "x", "a.ckpt": "x", "keep.ckpt": "x",
		"data/big": "x", "sub/data/small": "x", "sub/.gitignore": "local.txt\n!b.ckpt\n", "sub/local.txt": "x", "sub/b.ckpt": "x", "sub/deep/cache/x": "x",
		"local.txt": "x", ".git/config": "x", "sub/.git": "gitdir: elsewhere",
	})
	a := pack(t, dir)
	assert.Equal(t, []string{".gitignore", "keep.ckpt", "local.txt", "sub/", "sub/.gitignore", "sub/b.ckpt", "sub/data/", "sub/data/small", "sub/deep/", "train.py"}, names(t, a))
	assert.Equal(t, 4, a.Ignored)
	assert.Equal(t, 7, a.Files)
	assert.Contains(t, a.String(), "7 files, ")
	assert.Contains(t, a.String(), "4 left out by .gitignore")
}

func TestTheRepositoryAroundTheFolderCounts(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{".git/info/exclude": "secret\n", ".gitignore": "*.log\n/jobs/one/tmp\n", "jobs/.gitignore": "x.bin\n",
		"jobs/one/a.py": "", "jobs/one/a.log": "", "jobs/one/x.bin": "", "jobs/one/secret": "", "jobs/one/tmp/f": ""})
	assert.Equal(t, []string{"a.py"}, names(t, pack(t, filepath.Join(root, "jobs/one"))))
}

func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	files := map[string]string{"b": "1", "a/c": "2", "a.b": "3"}
	write(t, one, files)
	write(t, two, files)
	require.NoError(t, os.Chtimes(filepath.Join(two, "b"), time.Unix(1, 0), time.Unix(2, 0)))
	require.NoError(t, os.Chmod(filepath.Join(two, "b"), 0o600))
	a, b := pack(t, one), pack(t, two)
	assert.Equal(t, a.SHA256, b.SHA256)
	require.NoError(t, os.Chmod(filepath.Join(two, "b"), 0o700))
	assert.NotEqual(t, a.SHA256, pack(t, two).SHA256, "a program that can be executed is another file")
	sum := sha256.New()
	_, err := io.Copy(sum, a.Content())
	require.NoError(t, err)
	assert.Equal(t, a.SHA256, hex.EncodeToString(sum.Sum(nil)))
}

func TestLinksThatLeadOutDontGoAlong(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/f": "x", "g": "y"})
	for name, target := range map[string]string{"in": "a/f", "a/up": "../g", "out": "../x", "abs": "/etc/passwd", "a/tricky": "x/../../g"} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	a := pack(t, dir)
	assert.Equal(t, []string{"a/", "a/f", "a/up", "g", "in"}, names(t, a))
	assert.Len(t, a.Skipped, 3)
	to := t.TempDir()
	require.NoError(t, runtimecode.Unpack(t.Context(), a.Content(), to), "the runtime takes what is packed")
	got, err := os.ReadFile(filepath.Join(to, "a/up"))
	require.NoError(t, err)
	assert.Equal(t, "y", string(got))
}

func TestScriptsWithTheLineEndsOfWindowsAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"run.sh": "set -e\r\necho\r\n", "tool": "#!/usr/bin/env python3\r\nprint(1)\r\n",
		"good.sh": "set -e\necho\n", "data.csv": "1,2\r\n", "train.py": "print(1)\r\n",
	})
	assert.Equal(t, []string{"run.sh", "tool"}, pack(t, dir).Windows)
}

func TestAScriptIsReadToItsEndForLineEndsOfWindows(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"long.sh": strings.Repeat("echo\n", 20<<10) + "echo\r\n", "job.env": "A=1\r\n", "mac.sh": "echo\recho\n",
		"cut.sh": strings.Repeat("x", 32<<10-1) + "\r\n", // on the border of two reads
	})
	assert.Equal(t, []string{"cut.sh", "job.env", "long.sh"}, pack(t, dir).Windows)
}

func TestScriptsWithAByteOrderMarkAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"bom.sh": "\xEF\xBB\xBFecho\r\n", "tool": "\xEF\xBB\xBF#!/bin/sh\n", "wide": "\xFF\xFE#\x00!\x00/\x00", "wide.sh": "\xFE\xFF\x00e\x00c",
		"data.csv": "\xEF\xBB\xBF1,2\n", "train.py": "\xEF\xBB\xBFprint(1)\n",
	})
	a := pack(t, dir)
	assert.Equal(t, []string{"bom.sh", "tool", "wide", "wide.sh"}, a.Marked)
	assert.Empty(t, a.Windows)
}

func TestTooMuchIsRefusedAndTheLargestAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"train.py": "x"})
	f, err := os.Create(filepath.Join(dir, "model.bin"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(MaxBytes))
	require.NoError(t, f.Close())
	_, err = Pack(t.Context(), dir)
	require.ErrorContains(t, err, "has 256.0 MiB, but code may have at most 256.0 MiB")
	assert.Contains(t, hint.Of(err), "model.bin (256.0 MiB), train.py (1 B)")
}

func TestWhatIsNoFolderOfFilesIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := Pack(t.Context(), filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "there is no folder")
	_, err = Pack(t.Context(), dir)
	require.ErrorContains(t, err, "has no files")
	write(t, dir, map[string]string{"f": ""})
	_, err = Pack(t.Context(), filepath.Join(dir, "f"))
	require.ErrorContains(t, err, "is not a folder")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Pack(gone, dir)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 20: "3.0 MiB", 5 << 30: "5.0 GiB"} {
		assert.Equal(t, want, Size(n), fmt.Sprint(n))
	}
}
