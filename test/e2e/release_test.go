package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// unpackRelease unpacks Helm's record of a release, which is JSON that is compressed with gzip and encoded in base64.
func unpackRelease(t testing.TB, data []byte) []byte {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(string(data))
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return text
}
