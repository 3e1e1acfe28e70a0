// Package dictionaries delays the creation of zxcvbn's maps of frequent passwords, words and names. In: zxcvbn's lists. Out: zxcvbn's maps, created
// at the first check of a password.
//
// Otherwise zxcvbn's package matching would create the maps at the start of the program. That takes half of the processor time and a quarter of the
// memory of a short command. Go initializes independent packages in the order of their import paths. So this package is initialized before zxcvbn's
// package matching.
package dictionaries

import (
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/trustelem/zxcvbn/frequency"
)

var lists = withdraw()

// withdraw removes the lists from zxcvbn's package frequency, so that package matching creates empty maps. It returns the lists.
func withdraw() map[string][]string {
	all := frequency.FrequencyLists
	frequency.FrequencyLists = nil
	return all
}

// ranked copies the memory layout of the type of the variable in package matching.
type ranked struct{ _ map[string]map[string]int }

// matchers is the variable of package matching that holds its maps.
//
//go:linkname matchers github.com/trustelem/zxcvbn/matching.defaultRankedDictionnaries
var matchers ranked

// maps creates and returns the maps, like the initialization of package matching.
//
//go:linkname maps github.com/trustelem/zxcvbn/matching.loadDefaultDictionnaries
func maps() ranked

// Load creates the maps at its first call. It must be called before zxcvbn estimates a password.
var Load = sync.OnceFunc(func() {
	frequency.FrequencyLists = lists
	matchers = maps()
})
