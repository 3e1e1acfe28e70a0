// Package dictionaries delays the creation of zxcvbn's maps of frequent passwords, words and names. In: zxcvbn's lists. Out: zxcvbn's maps, from the
// first check of a password on.
//
// Without this package, zxcvbn's package matching creates the maps when a program starts, which takes half of the processor time and a quarter of the
// memory of a short command. Go initializes packages that don't depend on each other in the order of their import paths, so this package comes before
// zxcvbn's package matching.
package dictionaries

import (
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/trustelem/zxcvbn/frequency"
)

var lists = withdraw()

// withdraw removes the lists, so that package matching doesn't use them. It returns them.
func withdraw() map[string][]string {
	all := frequency.FrequencyLists
	frequency.FrequencyLists = nil
	return all
}

// ranked defines the layout of matching's type dictionaryMatch.
type ranked struct{ _ map[string]map[string]int }

// matchers is the variable of package matching that holds its maps.
//
//go:linkname matchers github.com/trustelem/zxcvbn/matching.defaultRankedDictionnaries
var matchers ranked

// maps creates the maps, as the initialization of package matching would.
//
//go:linkname maps github.com/trustelem/zxcvbn/matching.loadDefaultDictionnaries
func maps() ranked

// Load creates the maps, once. It has to be called before zxcvbn estimates a password.
var Load = sync.OnceFunc(func() {
	frequency.FrequencyLists = lists
	matchers = maps()
})
