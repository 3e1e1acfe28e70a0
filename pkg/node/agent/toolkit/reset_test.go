package toolkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

func TestAResetLeavesPersistenceAsItWas(t *testing.T) {
	t.Parallel()
	tier.More(t, "root")
	if os.Getuid() != 0 {
		t.Skip("chroot needs root")
	}
	if _, err := exec.LookPath("ldd"); err != nil {
		t.Skip("it needs ldd")
	}
	const query, off, reset, on = "--id=0000:07:00.0 --query-gpu=persistence_mode --format=csv,noheader", "--id=0000:07:00.0 --persistence-mode=0", "--id=0000:07:00.0 --gpu-reset", "--id=0000:07:00.0 --persistence-mode=1"
	for _, c := range []struct {
		name, said, fails string
		want              []string
		err               string
	}{
		{"on", "Enabled", "no", []string{query, off, reset, on}, ""},
		{"off", "Disabled", "no", []string{query, reset}, ""},
		{"a model without", "[N/A]", "no", []string{query, reset}, ""},
		{"it can't be taken off", "Enabled", "--persistence-mode=0", []string{query, off, reset}, ""},
		{"the reset fails", "Enabled", "--gpu-reset", []string{query, off, reset, on}, "nvidia-smi: it is in use: exit status 7"},
	} {
		root := t.TempDir()
		busybox(t, root, "exit 0")
		require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755))
		script := "#!/bin/sh\necho \"$*\" >>/asked\ncase \"$2\" in --query-gpu=*) echo '" + c.said + "';; " + c.fails + ") echo 'it is in use'; exit 7;; *) echo 'All done.';; esac\n"
		runnable.Write(t, filepath.Join(root, "usr/bin/nvidia-smi"), script)
		err := (&Toolkit{Root: root}).Reset(t.Context(), "0000:07:00.0")
		if c.err == "" {
			require.NoError(t, err, c.name)
		} else {
			require.EqualError(t, err, c.err, c.name)
		}
		asked, err := os.ReadFile(filepath.Join(root, "asked"))
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Split(strings.TrimSpace(string(asked)), "\n"), c.name)
	}
}
