// Package dictionaries delays reading zxcvbn's lists of frequent passwords, words and names.
// In: the lists as zxcvbn has them. Out: the same lists, when a password is checked.
//
// When a program starts, zxcvbn's package matching makes maps of all lists, which is half of the processor time and a quarter of the memory of
// a short command. Go initializes packages by import path if they don't depend on each other, and so this one before it.
package dictionaries

import "github.com/trustelem/zxcvbn/frequency"

var lists = withdraw()

// withdraw leaves no lists for package matching.
func withdraw() map[string][]string {
	all := frequency.FrequencyLists
	frequency.FrequencyLists = nil
	return all
}

// Lists returns lists by their names. The most frequent entry of each comes first.
func Lists() map[string][]string { return lists }
