package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// self returns the current user, because only root may set other owners.
func self() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Run(t.Context(), args, &out)
	return out.String(), err
}

func TestPrepareMakesAFolderAndThenChangesNothing(t *testing.T) {
	root := t.TempDir()
	args := []string{"prepare", "--root", root, "--owner", self(), "--mode", "2770", "/data/prometheus/data"}

	out, err := run(t, args...)
	require.NoError(t, err)
	require.Contains(t, out, "/data/prometheus/data: created")
	info, err := os.Stat(filepath.Join(root, "data/prometheus/data"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSetgid|0o770, info.Mode())

	out, err = run(t, args...)
	require.NoError(t, err)
	require.Equal(t, "/data/prometheus/data: unchanged\n", out)
}

func TestPrepareChangesTheFolderAndNotWhatLiesInIt(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "data/x/file")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, nil, 0o604))

	out, err := run(t, "prepare", "--root", root, "--owner", self(), "--mode", "0750", "/data/x")
	require.NoError(t, err)
	require.Contains(t, out, "mode -rwxr-x--- was -rwxr-xr-x")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o604), info.Mode())
}

func TestPrepareGivesTheFolderToItsOwner(t *testing.T) {
	tier.More(t, "root")
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder to another user")
	}
	root := t.TempDir()
	out, err := run(t, "prepare", "--root", root, "--owner", "65534", "--mode", "2770", "/data/x")
	require.NoError(t, err)
	require.Contains(t, out, "owner 65534:65534 was 0:0")
	info, err := os.Stat(filepath.Join(root, "data/x"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|fs.ModeSetgid|0o770, info.Mode(), "giving away clears the set-group-id bit, so that it comes after")
	require.EqualValues(t, 65534, info.Sys().(*syscall.Stat_t).Gid)
	above, err := os.Stat(filepath.Join(root, "data"))
	require.NoError(t, err)
	require.EqualValues(t, 0, above.Sys().(*syscall.Stat_t).Uid, "folders on the way stay root's")
}

func TestRemoveDeletesAllAndIsSafeToRepeat(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "data/x/a/b/c")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	for i := range 2500 { // more than are read at once
		require.NoError(t, os.WriteFile(filepath.Join(deep, fmt.Sprint(i)), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "data/other"), 0o755))

	for range 2 {
		out, err := run(t, "remove", "--root", root, "/data/x", "/gone/entirely/x")
		require.NoError(t, err)
		require.Contains(t, out, "/data/x: removed")
		require.NoDirExists(t, filepath.Join(root, "data/x"))
	}
	require.DirExists(t, filepath.Join(root, "data/other"))
}

func TestRemoveCanKeepTheFolder(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "data/x/a"), 0o755))
	out, err := run(t, "remove", "--keep-folder", "--root", root, "/data/x")
	require.NoError(t, err)
	require.Equal(t, "/data/x: emptied\n", out)
	require.DirExists(t, filepath.Join(root, "data/x"))
	require.NoDirExists(t, filepath.Join(root, "data/x/a"))
}

func TestLinksAreNeverFollowed(t *testing.T) {
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious/file")
	require.NoError(t, os.MkdirAll(filepath.Dir(precious), 0o755))
	require.NoError(t, os.WriteFile(precious, nil, 0o600))

	tests := []struct {
		name  string
		plant func(t *testing.T, root string)
		want  string // of both commands; empty: remove works
	}{
		{"the folder is a link out of the root", func(t *testing.T, root string) {
			require.NoError(t, os.Symlink(filepath.Join(outside, "precious"), filepath.Join(root, "data/x")))
		}, "is a symbolic link"},
		{"the folder is a link to a sibling", func(t *testing.T, root string) {
			require.NoError(t, os.Mkdir(filepath.Join(root, "data/y"), 0o755))
			require.NoError(t, os.Symlink("y", filepath.Join(root, "data/x")))
		}, "is a symbolic link"},
		{"a folder on the way is a link", func(t *testing.T, root string) {
			require.NoError(t, os.Remove(filepath.Join(root, "data")))
			require.NoError(t, os.Symlink(outside, filepath.Join(root, "data")))
		}, "/data: is a symbolic link"},
		{"a file stands in its place", func(t *testing.T, root string) {
			require.NoError(t, os.WriteFile(filepath.Join(root, "data/x"), nil, 0o600))
		}, "is not a folder"},
		{"links lie in the folder", func(t *testing.T, root string) {
			require.NoError(t, os.Mkdir(filepath.Join(root, "data/x"), 0o755))
			require.NoError(t, os.Symlink(filepath.Join(outside, "precious"), filepath.Join(root, "data/x/folder")))
			require.NoError(t, os.Symlink(precious, filepath.Join(root, "data/x/file")))
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(root, "data"), 0o755))
			tt.plant(t, root)

			_, err := run(t, "remove", "--root", root, "/data/x")
			if tt.want == "" {
				require.NoError(t, err)
				require.NoDirExists(t, filepath.Join(root, "data/x"))
			} else {
				require.ErrorContains(t, err, tt.want)
				_, err = run(t, "prepare", "--root", root, "--owner", self(), "--mode", "0700", "/data/x")
				require.ErrorContains(t, err, tt.want)
			}
			require.FileExists(t, precious)
			info, err := os.Stat(filepath.Dir(precious))
			require.NoError(t, err)
			require.Equal(t, fs.ModeDir|0o755, info.Mode())
		})
	}
}

func TestRemoveRefusesMountPoints(t *testing.T) {
	root, err := os.OpenRoot("/")
	require.NoError(t, err)
	defer root.Close()
	proc, err := root.OpenRoot("proc")
	require.NoError(t, err)
	defer proc.Close()
	require.ErrorContains(t, refuseMount(proc), "is a mount point")
	self, err := root.OpenRoot("proc/self")
	require.NoError(t, err)
	defer self.Close()
	require.NoError(t, refuseMount(self))
}

func TestDangerousPathsAreRefused(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/keep"), 0o755))
	for path, want := range map[string]string{
		"/":              "is refused",
		"/data":          "is refused: a volume must be at least 2 levels deep",
		"/etc":           "is refused",
		"/etc/keep":      "belongs to the machine's system",
		"/proc/sys":      "belongs to the machine's system",
		"/var/lib":       "belongs to the machine's system",
		"etc/keep":       "is not an absolute path",
		"/etc/keep/":     "is not a clean path",
		"/data/../etc":   "is not a clean path",
		"/etc/./keep":    "is not a clean path",
		"//etc":          "is not a clean path",
		"/etc/keep/..":   "is not a clean path",
		"/etc\x00/keep":  "is not a clean path",
		"/../etc/keep":   "is not a clean path",
		"/data/x/../../": "is not a clean path",
	} {
		for _, verb := range [][]string{{"remove"}, {"prepare", "--owner", self()}} {
			_, err := run(t, append(verb, "--root", root, path)...)
			require.ErrorContains(t, err, want, "%v %s", verb, path)
		}
	}
	require.DirExists(t, filepath.Join(root, "etc/keep"))
}

func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	root := t.TempDir()
	out, err := run(t, "prepare", "--root", root, "--owner", self(), "/etc", "/data/x")
	require.ErrorContains(t, err, "/etc is refused")
	require.Contains(t, out, "/data/x: created")
}

func TestWrongCommandLinesAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"no command":                     {},
		"unknown command":                {"format", "/data/x"},
		"no path":                        {"remove"},
		`owner "" is not a user id`:      {"prepare", "/data/x"},
		`owner "-1" is not a user id`:    {"prepare", "--owner=-1", "/data/x"},
		`owner "1:b" is not a user id`:   {"prepare", "--owner=1:b", "/data/x"},
		`mode "999" is not an octal`:     {"prepare", "--owner=1", "--mode=999", "/data/x"},
		`mode "4755" is not an octal`:    {"prepare", "--owner=1", "--mode=4755", "/data/x"},
		"flag provided but not defined:": {"remove", "--force", "/data/x"},
	} {
		_, err := run(t, args...)
		require.ErrorContains(t, err, want)
	}
}
