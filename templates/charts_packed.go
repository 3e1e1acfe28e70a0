//go:build packed

package templates

import (
	"archive/zip"
	"bytes"
	_ "embed" // the archive
	"fmt"
	"io/fs"
)

// packed is an archive of the charts, which hack/build makes. A file is unpacked when it is read.
//
//go:embed charts.zip
var packed []byte

// Charts holds the folder charts with one chart per service.
func Charts() fs.FS {
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		panic(fmt.Sprintf("read the embedded charts: %v", err)) // the archive is in memory
	}
	return r
}
