// Package garbage delays the first collection of garbage of a short program.
//
// Packages allocate some megabytes when the program starts, most of which stay in use. With Go's default, the collector runs several times
// during the start, for little garbage. Go initializes packages by import path if they don't depend on each other, so
// that this one, which has almost no dependencies, comes before most of the libraries.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// atStart makes the first collection begin at 32 MiB, eight times the default.
	atStart = 800
	// afterwards is for programs that run longer: fewer collections than by default, and up to three times the memory in use.
	afterwards = 200
)

// unset reports whether the user leaves the collector to the program.
func unset() bool { return os.Getenv("GOGC") == "" }

func init() {
	if unset() {
		untilFirst(atStart, afterwards)
	}
}

// mark is an object that nothing refers to, so that the first collection removes it.
type mark struct{ _ [64]byte }

// untilFirst sets the percentage of garbage until the first collection, and the one after it.
func untilFirst(first, then int) {
	debug.SetGCPercent(first)
	runtime.AddCleanup(new(mark), func(percent int) { debug.SetGCPercent(percent) }, then)
}
