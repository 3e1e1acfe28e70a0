package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestScriptsWithTheLineEndsOfWindowsAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.sh"), []byte("cd /data\r\npython3 train.py\r\n"), 0o600))
	io, _, _, errs := iostreams.Test()
	s := &Source{Code: dir}
	_, err := s.pack(t.Context(), &cmdutil.Factory{IO: io}, nil)
	require.NoError(t, err)
	assert.Contains(t, errs.String(), "warning: 1 script in "+dir+" with the line ends of Windows can't run on Linux: run.sh\n  -> convert the line ends with: sed -i 's/\\r$//' FILE")
}

func TestScriptsWithAByteOrderMarkAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.sh"), []byte("\xEF\xBB\xBFset -e\r\npython3 train.py\r\n"), 0o600))
	io, _, _, errs := iostreams.Test()
	s := &Source{Code: dir}
	_, err := s.pack(t.Context(), &cmdutil.Factory{IO: io}, nil)
	require.NoError(t, err)
	assert.Contains(t, errs.String(), "warning: 1 script in "+dir+" with a byte order mark can't run on Linux: run.sh\n  -> save as UTF-8 without a byte order mark")
}
