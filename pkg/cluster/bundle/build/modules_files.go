//go:build !packed

package build

import _ "embed" // the list

//go:embed modules.txtar
var modulesText []byte

func pinnedModules() ([]byte, error) { return modulesText, nil }
