//go:build !packed

package templates

import (
	"embed"
	"io/fs"
)

//go:embed all:charts
var charts embed.FS

// Charts holds the folder charts with one chart per service.
func Charts() fs.FS { return charts }
