//go:build packed

package build

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the archive
	"io"
)

// packed is modules.txtar, compressed by hack/build.
//
//go:embed modules.txtar.gz
var packed []byte

// pinnedModules returns the go.mod and go.sum files of the modules.
func pinnedModules() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
