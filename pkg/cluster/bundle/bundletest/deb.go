package bundletest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Deb writes a package without files to dir, under the name that apt would use, and returns its path. The argument more contains additional lines
// for the control file. The package's bytes depend only on the arguments.
func Deb(t testing.TB, dir, name, version, arch string, more ...string) string {
	t.Helper()
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: x <x@example.org>\n", name, version, arch)
	for _, line := range more {
		control += line + "\n"
	}
	control += "Description: stands for a package\n of more than one line\n"
	file := filepath.Join(dir, name+"_"+version+"_"+arch+".deb")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(file, DebOf(t, "control.tar.gz", Gzip(t, ControlTar(t, control))), 0o600))
	return file
}

// DebOf returns an archive in the format of a .deb. The name of its control archive is member, and the control file contains control.
func DebOf(t testing.TB, member string, control []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		body []byte
	}{{"debian-binary", []byte("2.0\n")}, {member, control}, {"data.tar", make([]byte, 1024)}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.body))
		b.Write(m.body)
		if len(m.body)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// ControlTar returns an uncompressed control archive with the control file.
func ControlTar(t testing.TB, control string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "./", Mode: 0o755, Typeflag: tar.TypeDir}))
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "./control", Mode: 0o644, Size: int64(len(control))}))
	_, err := w.Write([]byte(control))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Gzip returns data, compressed with gzip.
func Gzip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}
