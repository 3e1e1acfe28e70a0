package checks

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
)

func TestFileSystemsAreReportedBeforeTheyAreFull(t *testing.T) {
	for name, tc := range map[string]struct {
		row  string
		want []string
	}{
		"half full":             {"100 50 /dev/sda 100 50", nil},
		"a tenth free":          {"100 10 /dev/sda 100 10", nil},
		"less than a tenth":     {"1000 99 /dev/sda 0 0", []string{"warning disk: / is 91 % full: 99 KiB of 1000 KiB left, for /, /etc"}},
		"less than a twentieth": {"20971520 1048575 /dev/sda 0 0", []string{"error disk: / is 96 % full: 1023 MiB of 20.0 GiB left, for /, /etc"}},
		"few inodes":            {"100 50 tmpfs 1000 10", []string{"error inodes: / has 10 of 1000 inodes left, for /, /etc"}},
		"no limit":              {"0 0 tmpfs 0 0", nil},
	} {
		var rows [][]string
		for _, path := range []string{"/", "/etc"} {
			rows = append(rows, append([]string{path, "/"}, strings.Fields(tc.row)...))
		}
		fs := Filesystems(append(rows, []string{"cut", "off"}))
		require.Len(t, fs, 1, name)
		assert.Equal(t, tc.want, texts(fs[0].CheckSpace()), name)
	}
}

func TestAFileSystemThatDoesNotAnswerHidesNoOther(t *testing.T) {
	root, bin := t.TempDir(), t.TempDir()
	require.NoError(t, exec.CommandContext(t.Context(), "mkdir", "-p", root+"/a", root+"/hangs").Run())
	runnable.Write(t, filepath.Join(bin, "timeout"), "#!/bin/sh\nshift\ncase \"$*\" in */hangs*) exit 124 ;; esac\nexec \"$@\"\n")
	for _, sh := range []string{"/bin/sh", "bash"} {
		cmd := exec.CommandContext(t.Context(), sh, "-euc", FilesystemsScript+"R="+root+"\nfilesystems / /a/b /hangs/b")
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		var rows [][]string
		for line := range strings.Lines(string(out)) {
			rows = append(rows, strings.Split(strings.TrimSpace(line), "\t")[1:])
		}
		fs := Filesystems(rows)
		require.Len(t, fs, 1, "%s", out)
		assert.Equal(t, []string{"/", "/a/b"}, fs[0].Paths)
		assert.Positive(t, fs[0].Size)
	}
}

func TestAFileSystemThatDoesNotTellItsRoomIsNotFull(t *testing.T) {
	assert.Empty(t, Filesystems([][]string{{"/data", "/data", "-", "-", "server:/data", "-", "-"}}))
	all := Filesystems([][]string{{"/data", "/data", "1000", "500", "/dev/sdb1", "-", "-"}})
	if assert.Len(t, all, 1) {
		assert.Empty(t, all[0].Holds(400, 100, []string{"/data"}), "inodes that aren't told suffice")
	}
}
