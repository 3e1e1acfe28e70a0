package ssh_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

func file(path, content string, mode uint32) ssh.File {
	sum := sha256.Sum256([]byte(content))
	return ssh.File{
		Path: path, Mode: mode, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return string(b)
}

func TestUploadSendsOnlyWhatDiffers(t *testing.T) {
	root := t.TempDir()
	h, _, counter := dial(t, sshtest.Config{Name: "node1", Handler: sshtest.Shell{Root: root}})
	files := []ssh.File{
		file("/etc/paictl/a b.conf", "alpha\n", 0o644),
		file("/etc/paictl/it's \"odd\" $(x) *.conf", "beta\n", 0o600),
		file("/usr/local/bin/tool", noise(300_000), 0o755),
		file("/etc/empty", "", 0o640),
	}
	r, err := h.Upload(t.Context(), files, nil)
	require.NoError(t, err)
	assert.Equal(t, ssh.UploadResult{Sent: 4, Bytes: 300_011}, r)
	assert.Equal(t, 3, counter.Host("node1").RoundTrips, "check, bytes, finish")
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(root, f.Path))
		require.NoError(t, err)
		sum := sha256.Sum256(got)
		assert.Equal(t, f.SHA256, hex.EncodeToString(sum[:]), f.Path)
		info, err := os.Stat(filepath.Join(root, f.Path))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(f.Mode), info.Mode().Perm(), f.Path)
	}
	assertNoRemains(t, root)

	for range 2 {
		counter.Reset()
		r, err = h.Upload(t.Context(), files, nil)
		require.NoError(t, err)
		assert.Equal(t, ssh.UploadResult{Skipped: 4}, r)
		assert.Equal(t, 1, counter.Host("node1").RoundTrips, "unchanged: one round trip")
	}

	counter.Reset()
	files[0] = file(files[0].Path, "gamma\n", 0o644) // same size, other content
	require.NoError(t, os.Chmod(filepath.Join(root, files[2].Path), 0o700))
	r, err = h.Upload(t.Context(), files, nil)
	require.NoError(t, err)
	assert.Equal(t, ssh.UploadResult{Sent: 1, Skipped: 3, Bytes: 6}, r)
	assert.Equal(t, 3, counter.Host("node1").RoundTrips)
	info, err := os.Stat(filepath.Join(root, files[2].Path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "a mode that differs is set right")
}

func TestUploadNoticesAFileThatWasChangedOnTheHost(t *testing.T) {
	root := t.TempDir()
	h, _, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
	files := []ssh.File{file("/etc/x", "right", 0o644)}
	_, err := h.Upload(t.Context(), files, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(root+"/etc/x", []byte("wrong"), 0o644))
	r, err := h.Upload(t.Context(), files, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, r.Sent)
	got, err := os.ReadFile(root + "/etc/x")
	require.NoError(t, err)
	assert.Equal(t, "right", string(got))
}

func TestUploadReportsProgressUpToTheEnd(t *testing.T) {
	h, _, _ := dial(t, shell(t))
	files := []ssh.File{file("/a", noise(200_000), 0o644), file("/b", noise(100_000), 0o644)}
	var last, total int64
	_, err := h.Upload(t.Context(), files, func(s, of int64) {
		assert.GreaterOrEqual(t, s, last)
		last, total = s, of
	})
	require.NoError(t, err)
	assert.EqualValues(t, 300_000, total)
	assert.EqualValues(t, 300_000, last)
}

func TestUploadNamesCorruption(t *testing.T) {
	root := t.TempDir()
	broken := sshtest.Shell{Root: root, Corrupt: func(_ string, offset int64, b []byte) {
		if offset == 0 {
			b[0] ^= 1
		}
	}}
	h, _, _ := dial(t, sshtest.Config{Handler: broken})
	_, err := h.Upload(t.Context(), []ssh.File{file("/etc/x", "content", 0o644)}, nil)
	require.ErrorContains(t, err, "/etc/x")
	require.ErrorContains(t, err, "corrupted in transit")
	assert.NoFileExists(t, root+"/etc/x")
	assertNoRemains(t, root)
}

func TestUploadNamesALocalFileThatIsNotWhatItShouldBe(t *testing.T) {
	h, _, _ := dial(t, shell(t))
	f := file("/etc/x", "content", 0o644)
	f.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("CONTENT")), nil }
	_, err := h.Upload(t.Context(), []ssh.File{f}, nil)
	require.ErrorContains(t, err, "the local file does not have its checksum")
	f.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("short")), nil }
	_, err = h.Upload(t.Context(), []ssh.File{f}, nil)
	require.ErrorContains(t, err, "the local file does not have its 7 bytes")
}

func TestUploadContinuesALargeFile(t *testing.T) {
	const size = 12 << 20
	content := noise(size)
	for name, test := range map[string]struct {
		remains   func(b []byte) // changes what the first attempt left
		wantBytes int64
	}{
		"what is there is right": {func([]byte) {}, 6 << 20},
		"what is there is wrong": {func(b []byte) { b[100] ^= 1 }, 6<<20 + size},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			h, _, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
			f := file("/opt/image.tar", content, 0o644)
			broken := f
			broken.Open = func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader(content[:10<<20]), failing{})), nil
			}
			_, err := h.Upload(t.Context(), []ssh.File{broken}, nil)
			require.ErrorContains(t, err, "the disk is gone")
			temps, err := filepath.Glob(root + "/opt/.paictl-*")
			require.NoError(t, err)
			require.Len(t, temps, 1)
			info, err := os.Stat(temps[0])
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody else reads what is not finished")
			left := []byte(content[:10<<20])
			test.remains(left)
			require.NoError(t, os.WriteFile(temps[0], left, 0o600))

			r, err := h.Upload(t.Context(), []ssh.File{f}, nil)
			require.NoError(t, err)
			assert.Equal(t, test.wantBytes, r.Bytes)
			got, err := os.ReadFile(root + "/opt/image.tar")
			require.NoError(t, err)
			assert.True(t, bytes.Equal([]byte(content), got))
			assertNoRemains(t, root)
		})
	}
}

var errDiskGone = errors.New("the disk is gone")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDiskGone }

func TestUploadSurvivesTheLossOfTheConnectionAtEveryStep(t *testing.T) {
	for _, when := range []sshtest.When{sshtest.BeforeExec, sshtest.MidTransfer, sshtest.MidRun, sshtest.AfterExec} {
		for k := 1; k <= 3; k++ {
			root := t.TempDir()
			s := sshtest.NewServer(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
			c := sshtest.Dialer(t, s)
			files := []ssh.File{file("/etc/a", "one", 0o644), file("/etc/b", noise(100_000), 0o600)}
			h, err := c.Dial(t.Context(), s.Target())
			require.NoError(t, err)
			s.SetFault(sshtest.Fault{Exec: k, When: when})
			if _, err = h.Upload(t.Context(), files, nil); err != nil {
				require.ErrorIs(t, err, ssh.ErrClosed, "k=%d when=%d", k, when)
			}
			s.Wait()
			s.SetFault(sshtest.Fault{})
			h, err = c.Dial(t.Context(), s.Target())
			require.NoError(t, err)
			_, err = h.Upload(t.Context(), files, nil)
			require.NoError(t, err)
			assertNoRemains(t, root)
			for _, f := range files {
				assert.FileExists(t, filepath.Join(root, f.Path))
			}
		}
	}
}

func TestUploadRefusesWhatItCannotName(t *testing.T) {
	h, s, _ := dial(t, shell(t))
	bad := map[string]ssh.File{
		"relative":     file("etc/x", "", 0o644),
		"unclean":      file("/etc/../x", "", 0o644),
		"a line break": file("/etc/a\nb", "", 0o644),
		"backslash":    file(`/etc/a\b`, "", 0o644),
	}
	noSum := file("/etc/x", "", 0o644)
	noSum.SHA256 = "beef"
	bad["a bad checksum"] = noSum
	for name, f := range bad {
		_, err := h.Upload(t.Context(), []ssh.File{f}, nil)
		require.Error(t, err, name)
	}
	twice := file("/etc/x", "", 0o644)
	_, err := h.Upload(t.Context(), []ssh.File{twice, twice}, nil)
	require.ErrorContains(t, err, "twice")
	assert.Empty(t, s.Execs())
}

func TestUploadDoesNotReplaceADirectory(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(root+"/etc/x", 0o755))
	h, _, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
	_, err := h.Upload(t.Context(), []ssh.File{file("/etc/x", "a", 0o644)}, nil)
	require.ErrorContains(t, err, "/etc/x is a directory")
}

func TestUploadsToTheSamePathWaitForEachOther(t *testing.T) {
	root := t.TempDir()
	h, _, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
	errs := make(chan error)
	for range 6 {
		go func() {
			_, err := h.Upload(t.Context(), []ssh.File{file("/etc/x", noise(200_000), 0o644)}, nil)
			errs <- err
		}()
	}
	for range 6 {
		require.NoError(t, <-errs)
	}
	assertNoRemains(t, root)
}

// assertNoRemains fails if a partial file exists.
func assertNoRemains(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		assert.False(t, strings.HasPrefix(filepath.Base(path), ".paictl-"), path)
		return err
	}))
}

// A caller of Missing transfers files without Upload. The caller writes to the folder that Upload would use, and can resume a partial upload.
func TestMissingFilesAreThoseThatUploadWouldSend(t *testing.T) {
	root := t.TempDir()
	h, _, counter := dial(t, sshtest.Config{Name: "node1", Handler: sshtest.Shell{Root: root}})
	there, missing := file("/srv/there", "alpha\n", 0o600), file("/srv/new folder/missing", "beta\n", 0o640)
	_, err := h.Upload(t.Context(), []ssh.File{there}, nil)
	require.NoError(t, err)
	counter.Reset()
	got, err := h.Missing(t.Context(), []ssh.File{there, missing})
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, missing.Path, got[0].Path)
	assert.Equal(t, 1, counter.Host("node1").RoundTrips)
	assert.Equal(t, "/srv/new folder", filepath.Dir(got[0].Part))
	info, err := os.Stat(root + got[0].Part)
	require.NoError(t, err, "the folder is there, and what an upload goes on with")
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(root+got[0].Part, []byte("beta\n"), 0o640))
	require.NoError(t, os.Rename(root+got[0].Part, root+missing.Path))
	require.NoError(t, os.Chmod(root+missing.Path, 0o640))
	got, err = h.Missing(t.Context(), []ssh.File{there, missing})
	require.NoError(t, err)
	assert.Empty(t, got)
	none, err := h.Missing(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = h.Missing(t.Context(), []ssh.File{{Path: "relative"}})
	assert.Error(t, err)
}

func TestADryRunPreparesNoFolderForMissingFiles(t *testing.T) {
	root := t.TempDir()
	s := sshtest.NewServer(t, sshtest.Config{Name: "node1", Handler: sshtest.Shell{Root: root}})
	o := sshtest.Options(t, s)
	o.Gate = ssh.DryRunGate{}
	client := ssh.NewClient(o)
	defer func() { _ = client.Close() }()
	h, err := client.Dial(t.Context(), s.Target())
	require.NoError(t, err)
	_, err = h.Missing(t.Context(), []ssh.File{file("/srv/x", "x", 0o600)})
	require.ErrorIs(t, err, ssh.ErrDryRun)
	assert.NoDirExists(t, filepath.Join(root, "srv"))
}
