// Package dictionaries delays the maps that zxcvbn makes of its lists of frequent passwords, words and names.
// In: the lists as zxcvbn has them. Out: zxcvbn's maps, from the first check of a password on.
//
// When a program starts, zxcvbn's package matching makes the maps, which is half of the processor time and a quarter of the memory of
// a short command. Go initializes packages by import path if they don't depend on each other, and so this one before it.
package dictionaries

import (
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/trustelem/zxcvbn/frequency"
)

var lists = withdraw()

// withdraw leaves no lists for package matching.
func withdraw() map[string][]string {
	all := frequency.FrequencyLists
	frequency.FrequencyLists = nil
	return all
}

// ranked has the layout of matching's type dictionaryMatch.
type ranked struct{ _ map[string]map[string]int }

// matchers is the variable of package matching with its maps.
//
//go:linkname matchers github.com/trustelem/zxcvbn/matching.defaultRankedDictionnaries
var matchers ranked

// maps makes the maps as the initialization of package matching does.
//
//go:linkname maps github.com/trustelem/zxcvbn/matching.loadDefaultDictionnaries
func maps() ranked

// Load makes the maps, once. It has to be called before zxcvbn estimates a password.
var Load = sync.OnceFunc(func() {
	frequency.FrequencyLists = lists
	matchers = maps()
})
