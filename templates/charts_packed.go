//go:build packed

package templates

import (
	"archive/zip"
	"bytes"
	_ "embed" // the archive
	"fmt"
	"io/fs"
)

// packed is the archive of the charts that hack/build writes. Each file is unpacked when it is read.
//
//go:embed charts.zip
var packed []byte

// Charts returns a file system whose folder charts contains one chart per service.
func Charts() fs.FS {
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		panic(fmt.Sprintf("read the embedded charts: %v", err)) // the archive is in memory
	}
	return r
}
