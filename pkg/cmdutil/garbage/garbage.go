// Package garbage delays the first garbage collection of a short program.
//
// Packages allocate some megabytes when the program starts, and most of this memory stays in use. With Go's default, the garbage collector runs
// several times during the start and frees little memory. Go initializes packages in the order of their import paths, after their imports. This
// package imports only package runtime, so that it is initialized before libraries. It can't use runtime/debug, which exports the function
// SetGCPercent, because that package is initialized after most libraries.
package garbage

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

const (
	// byDefault is the percentage that Go uses unless GOGC is set.
	byDefault = 100
	// atStart delays the first collection until the heap has 32 MiB, which is eight times the default.
	atStart = 800
	// afterwards is the percentage after the first collection. Programs that run longer have fewer collections than by default, and need up to
	// three times the memory in use.
	afterwards = 200
)

func init() { start() }

// start sets the percentages, unless the user has set another percentage in GOGC.
func start() {
	if was := setGCPercent(atStart); was != byDefault {
		setGCPercent(was)
		return
	}
	untilFirst(atStart, afterwards)
}

// setGCPercent sets the percentage, and returns the previous percentage. debug.SetGCPercent calls this function.
//
//go:linkname setGCPercent runtime/debug.setGCPercent
func setGCPercent(percent int32) int32

// mark is an object without references, so that the first collection removes it.
type mark struct{ _ [64]byte }

// untilFirst sets the percentage to first. After the first collection, it sets the percentage to then.
func untilFirst(first, then int32) {
	setGCPercent(first)
	runtime.AddCleanup(new(mark), func(percent int32) { setGCPercent(percent) }, then)
}
