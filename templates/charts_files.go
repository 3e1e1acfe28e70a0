//go:build !packed

package templates

import (
	"embed"
	"io/fs"
)

//go:embed all:charts
var charts embed.FS

// Charts returns a file system whose folder charts contains one chart per service.
func Charts() fs.FS { return charts }
