//go:build packed

package paictl

import _ "embed" // the archive

// packed is the archive of Source that hack/build makes.
//
//go:embed source.archive
var packed []byte

func read() (map[string]string, error) { return Unpack(packed) }
