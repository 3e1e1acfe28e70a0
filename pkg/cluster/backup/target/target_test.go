package target_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

var at = time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)

type kept struct {
	target.Target
	place string
	// names returns the names of all files in the target, including files that aren't backups.
	names func(t *testing.T) []string
}

func places() map[string]func(t *testing.T) kept {
	return map[string]func(t *testing.T) kept{
		"a folder": func(t *testing.T) kept {
			dir := t.TempDir()
			return open(t, dir, dir, target.Options{})
		},
		"a machine": func(t *testing.T) kept {
			k, _ := onServer(t)
			return k
		},
		"a machine with OpenSSH": onOpenSSH,
		"S3":                     onS3,
	}
}

func open(t *testing.T, place, dir string, o target.Options) kept {
	t.Helper()
	to, err := target.Open(place, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, to.Close()) })
	return kept{Target: to, place: place, names: func(t *testing.T) []string { return below(t, dir) }}
}

func below(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			out = append(out, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return out
}

func dialling(client *ssh.Client, to ssh.Target) func(target.Machine) (*ssh.Client, ssh.Target, error) {
	return func(m target.Machine) (*ssh.Client, ssh.Target, error) {
		to.User = m.User
		return client, to, nil
	}
}

func onServer(t *testing.T) (kept, *sshtest.Server) {
	t.Helper()
	dir := t.TempDir()
	server := sshtest.NewServer(t, sshtest.Config{User: "keeper", Handler: sshtest.Shell{Root: dir}})
	o := target.Options{Dial: dialling(ssh.NewClient(sshtest.Options(t, server)), server.Target())}
	return open(t, "ssh://keeper@"+server.Addr()+dir, dir, o), server
}

func text(s string) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func read(t *testing.T, k kept, name string) string {
	t.Helper()
	in, size, err := k.Open(t.Context(), name)
	require.NoError(t, err)
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	assert.EqualValues(t, len(got), size)
	return string(got)
}

func TestATargetKeepsBackups(t *testing.T) {
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			k := place(t)
			files, err := k.List(t.Context(), "")
			require.NoError(t, err)
			assert.NotNil(t, files, "an empty list is a list")
			assert.Empty(t, files)

			first, second, other := backup.Name("pai", at), backup.Name("pai", at.Add(time.Hour)), backup.Name("other", at)
			strange := []string{"notes.txt", "pai-20261127.paictl-backup", "pai-20269927T020000Z.paictl-backup"}
			for _, n := range append([]string{first, second, other}, strange...) {
				size, err := k.Write(t.Context(), n, text("the backup "+n))
				require.NoError(t, err)
				assert.EqualValues(t, len("the backup "+n), size)
			}
			files, err = k.List(t.Context(), "pai")
			require.NoError(t, err)
			require.Len(t, files, 2)
			assert.Equal(t, backup.File{Path: k.place + "/" + second, Cluster: "pai", Time: at.Add(time.Hour), Size: int64(len("the backup " + second))}, files[0])
			files, err = k.List(t.Context(), "")
			require.NoError(t, err)
			assert.Len(t, files, 3)

			assert.Equal(t, "the backup "+first, read(t, k, first))
			_, err = k.Write(t.Context(), first, text("another"))
			require.NoError(t, err)
			assert.Equal(t, "another", read(t, k, first), "the same name again")
			require.NoError(t, k.Delete(t.Context(), first))
			require.NoError(t, k.Delete(t.Context(), first), "it is gone")
			_, _, err = k.Open(t.Context(), first)
			require.ErrorIs(t, err, fs.ErrNotExist)
			assert.ElementsMatch(t, append([]string{second, other}, strange...), k.names(t))
		})
	}
}

func TestAMachineIsAskedOverOneConnection(t *testing.T) {
	k, server := onServer(t)
	for range 3 {
		_, err := k.Write(t.Context(), backup.Name("pai", at), text("x"))
		require.NoError(t, err)
		assert.Equal(t, "x", read(t, k, backup.Name("pai", at)))
		require.NoError(t, k.Delete(t.Context(), backup.Name("pai", at)))
	}
	assert.Equal(t, 1, server.Dials())
	server.Drop()
	require.Eventually(t, func() bool { // the first call after the drop gets the error
		_, err := k.List(t.Context(), "")
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, 2, server.Dials())
}

// A backup may be larger than a single read, and larger than a part of an S3 upload.
func TestATargetKeepsALargeBackup(t *testing.T) {
	large := make([]byte, 70<<20+12345)
	_, _ = rand.Read(large) // never fails
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			k := place(t)
			size, err := k.Write(t.Context(), backup.Name("pai", at), func(_ context.Context, w io.Writer) error {
				_, err := io.Copy(w, struct{ io.Reader }{bytes.NewReader(large)})
				return err
			})
			require.NoError(t, err)
			assert.EqualValues(t, len(large), size)
			assert.True(t, bytes.Equal(large, []byte(read(t, k, backup.Name("pai", at)))))
		})
	}
}

func TestWhatIsNotWholeGetsNoName(t *testing.T) {
	broken := errors.New("etcd went away")
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			k := place(t)
			_, err := k.Write(t.Context(), backup.Name("pai", at), func(_ context.Context, w io.Writer) error {
				// The output is larger than one part of an S3 upload.
				for range 40 {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return err
					}
				}
				return broken
			})
			require.ErrorIs(t, err, broken)
			assert.Empty(t, k.names(t))

			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			_, err = k.Write(ctx, backup.Name("pai", at), func(ctx context.Context, w io.Writer) error {
				if _, err := w.Write(make([]byte, 40<<20)); err != nil {
					return err
				}
				assert.Empty(t, backups(t, k), "it isn't complete yet")
				cancel(errors.New("interrupted"))
				<-ctx.Done()
				return context.Cause(ctx)
			})
			require.ErrorContains(t, err, "interrupted")
			assert.Empty(t, k.names(t))
		})
	}
}

func backups(t *testing.T, k kept) []backup.File {
	t.Helper()
	files, err := k.List(context.WithoutCancel(t.Context()), "")
	require.NoError(t, err)
	return files
}

func TestWhatAKilledUploadLeftIsRemovedByTheNext(t *testing.T) {
	old := time.Now().Add(-4 * time.Hour)
	t.Run("a folder", func(t *testing.T) {
		dir := t.TempDir()
		k := open(t, dir, dir, target.Options{})
		for name, when := range map[string]time.Time{
			".pai-20261127T020000Z.paictl-backup123": old, ".pai-20261127T020000Z.paictl-backup124": time.Now(), ".other": old, "pai-20261127T010000Z.paictl-backup": old,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			require.NoError(t, os.Chtimes(filepath.Join(dir, name), when, when))
		}
		_, err := k.Write(t.Context(), backup.Name("pai", at.Add(time.Hour)), text("x"))
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{".pai-20261127T020000Z.paictl-backup124", ".other", "pai-20261127T010000Z.paictl-backup", "pai-20261127T030000Z.paictl-backup"}, k.names(t))
	})
	t.Run("a machine", func(t *testing.T) {
		k, server := onServer(t)
		_, err := k.Write(t.Context(), backup.Name("pai", at), func(_ context.Context, w io.Writer) error {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
			server.Drop()
			_, err := w.Write(make([]byte, 1<<20))
			return err
		})
		require.ErrorIs(t, err, ssh.ErrClosed)
		require.ErrorContains(t, err, "write the backup "+k.place)
		left := k.names(t)
		require.Len(t, left, 2, "a folder and the file in it")
		_, err = k.Write(t.Context(), backup.Name("pai", at), text("x"))
		require.NoError(t, err)
		assert.Len(t, k.names(t), 3, "another one may be writing it")

		_, dir, _ := strings.Cut(strings.TrimPrefix(k.place, "ssh://"), "/")
		for _, name := range left {
			require.NoError(t, os.Chtimes("/"+dir+"/"+name, old, old))
		}
		_, err = k.Write(t.Context(), backup.Name("pai", at), text("x"))
		require.NoError(t, err)
		assert.Equal(t, []string{backup.Name("pai", at)}, k.names(t))
	})
}

func TestABackupIsItsOwnersAlone(t *testing.T) {
	for name, place := range map[string]func(*testing.T) kept{"a folder": places()["a folder"], "a machine": places()["a machine"], "OpenSSH": onOpenSSH} {
		t.Run(name, func(t *testing.T) {
			k := place(t)
			dir := k.place
			if strings.HasPrefix(dir, "ssh://") {
				_, dir, _ = strings.Cut(strings.TrimPrefix(dir, "ssh://"), "/")
				dir = "/" + dir
			}
			_, err := k.Write(t.Context(), backup.Name("pai", at), func(_ context.Context, w io.Writer) error {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
				// Other users must not be able to read an unfinished archive.
				all, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Len(t, all, 1)
				info, err := all[0].Info()
				require.NoError(t, err)
				assert.Zero(t, info.Mode().Perm()&0o077, "%s", all[0].Name())
				return nil
			})
			require.NoError(t, err)
			info, err := os.Stat(filepath.Join(dir, backup.Name("pai", at)))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		})
	}
}

func TestATargetThatCannotBeUsedIsToldBeforeAnythingIsMade(t *testing.T) {
	k, server := onServer(t)
	client := ssh.NewClient(sshtest.Options(t, server))
	o := target.Options{Dial: dialling(client, server.Target())}
	for name, c := range map[string]struct{ place, says, remedy string }{
		"no folder":            {t.TempDir() + "/none", "no such file or directory", "an existing folder"},
		"no folder over there": {k.place + "/none", "file does not exist", "create the folder on the machine"},
		"not this user's":      {"ssh://keeper@" + server.Addr() + "/elsewhere", "permission denied", "where the user may write"},
		"not this user":        {strings.Replace(k.place, "keeper", "guest", 1), "authentication refused", "guest"},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := target.Open(c.place, o)
			require.NoError(t, err)
			_, err = to.Write(t.Context(), backup.Name("pai", at), func(context.Context, io.Writer) error {
				t.Error("the backup was begun")
				return nil
			})
			require.ErrorContains(t, err, c.says)
			assert.Contains(t, hint.Of(err), c.remedy)
			_, err = to.List(t.Context(), "")
			require.Error(t, err)
		})
	}
}

func TestPlacesAreCheckedBeforeAnyoneIsAsked(t *testing.T) {
	for place, says := range map[string]string{
		"ssh://keeper:hunter2@nas/backups": "ssh://keeper@nas/backups: a place can't contain a password",
		"ssh://nas":                        "the folder is missing",
		"ssh:///backups":                   "the machine is missing",
		"ssh://@nas/backups":               "the user is missing",
		"ssh://nas:0/backups":              "0 is not a port",
		"ssh://-oProxyCommand=x/backups":   "the machine is missing",
		"gs://bucket/backups":              "backups can't be kept there",
		"file:///backups":                  "is written without file://",
		"s3://":                            "not the name of a bucket",
		"s3://Bucket/x":                    "not the name of a bucket",
		"s3://u:hunter2@bucket/x":          "not the name of a bucket",
		"https://u:hunter2@host/x":         "backups can't be kept there",
	} {
		_, err := target.Open(place, target.Options{S3: target.S3{Getenv: func(string) string { return "" }}})
		require.ErrorContains(t, err, says, place)
		assert.NotEmpty(t, hint.Of(err), place)
		assert.NotContains(t, err.Error()+hint.Of(err), "hunter2", place)
	}
}

func TestAPathOfAMachineStartsAtItsRootOrInTheUsersHome(t *testing.T) {
	for place, path := range map[string]string{
		"ssh://nas/srv/backups/":           "ssh://nas/srv/backups/x",
		"ssh://nas/":                       "ssh://nas/x",
		"SFTP://keeper@[fd00::1]:22/~/pai": "sftp://keeper@[fd00::1]:22/~/pai/x",
		"ssh://nas/~":                      "ssh://nas/~/x",
		"s3://bucket//a/../b/":             "s3://bucket/b/x",
		"s3://bucket":                      "s3://bucket/x",
		".":                                "x",
		"/mnt/":                            "/mnt/x",
	} {
		to, err := target.Open(place, target.Options{S3: target.S3{Getenv: func(string) string { return "" }}})
		require.NoError(t, err, place)
		assert.Equal(t, path, to.Path("x"))
	}
}

func TestTheNameOfABackupIsTheEndOfItsPlace(t *testing.T) {
	for file, want := range map[string][2]string{
		"x":                 {".", "x"},
		"./x":               {"./", "x"},
		"/x":                {"/", "x"},
		"ssh://nas/srv/x":   {"ssh://nas/srv/", "x"},
		"s3://bucket/x":     {"s3://bucket/", "x"},
		"s3://bucket/pai/x": {"s3://bucket/pai/", "x"},
	} {
		place, name, err := target.Split(file)
		require.NoError(t, err, file)
		assert.Equal(t, want, [2]string{place, name}, file)
	}
	for _, file := range []string{"", "a/", "..", "s3://bucket", "ssh://nas/"} {
		_, _, err := target.Split(file)
		require.Error(t, err, file)
	}
}
