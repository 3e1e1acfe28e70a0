package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// dropped is the result of an edit that removes a file.
const dropped = "\x00dropped"

// retag rewrites an unencrypted archive. edit changes or removes files.
func retag(t *testing.T, archive []byte, edit func(name, text string) string) []byte {
	t.Helper()
	unpacked, err := zstd.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	defer unpacked.Close()
	var out bytes.Buffer
	packed, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	in, to := tar.NewReader(unpacked), tar.NewWriter(packed)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		edited := edit(h.Name, string(text))
		if edited == dropped {
			continue
		}
		h.Size = int64(len(edited))
		require.NoError(t, to.WriteHeader(h))
		_, err = io.WriteString(to, edited)
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	require.NoError(t, packed.Close())
	return out.Bytes()
}
