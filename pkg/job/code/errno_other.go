//go:build !unix

package code

import "io/fs"

var errNotFolder = fs.ErrNotExist
