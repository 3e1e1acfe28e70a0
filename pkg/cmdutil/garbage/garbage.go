// Package garbage delays the first collection of garbage of a short program.
//
// Packages allocate some megabytes when the program starts, and most of this memory stays in use. With Go's default, the collector runs several
// times during the start and frees little. Go initializes packages in the order of their import paths, after their imports. This package imports
// only package runtime, so that it is initialized before libraries: package runtime/debug, which has the public function, is initialized after most
// libraries.
package garbage

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

const (
	// byDefault is Go's percentage, unless GOGC is set.
	byDefault = 100
	// atStart makes the first collection begin at 32 MiB, eight times the default.
	atStart = 800
	// afterwards is for programs that run longer: fewer collections than by default, and up to three times the memory in use.
	afterwards = 200
)

func init() { start() }

// start sets the percentages, unless the user has set another one.
func start() {
	if was := setGCPercent(atStart); was != byDefault {
		setGCPercent(was)
		return
	}
	untilFirst(atStart, afterwards)
}

// setGCPercent returns the function that debug.SetGCPercent calls.
//
//go:linkname setGCPercent runtime/debug.setGCPercent
func setGCPercent(percent int32) int32

// mark is an object that nothing refers to, so that the first collection removes it.
type mark struct{ _ [64]byte }

// untilFirst sets the percentage until the first collection, and the percentage for later collections.
func untilFirst(first, then int32) {
	setGCPercent(first)
	runtime.AddCleanup(new(mark), func(percent int32) { setGCPercent(percent) }, then)
}
