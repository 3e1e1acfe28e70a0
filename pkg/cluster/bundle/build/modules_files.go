//go:build !packed

package build

import _ "embed" // the list

//go:embed modules.txtar
var modulesText []byte

// pinnedModules returns the go.mod and go.sum files of the modules.
func pinnedModules() ([]byte, error) { return modulesText, nil }
