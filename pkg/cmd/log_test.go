package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestWhatLibrariesLogGoesToTheDebugLog(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	io, _, out, errOut := iostreams.Test()
	f := cmdutil.New("v0")
	f.IO = io
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, openLog(f, path))
	klog.Background().Error(errors.New("context canceled"), "Unexpected error when reading response body")
	klog.Flush()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(got), "Unexpected error when reading response body")
	assert.Empty(t, out.String()+errOut.String())
}
