// Package noquery prevents the program from querying the terminal for its colors at the start.
//
// bubbletea v1 sends the query in its init, for every command: if the terminal doesn't respond, each command takes five seconds longer, and text
// that is typed during this time is lost. bubbletea doesn't query terminals whose TERM begins with screen, so this package sets TERM to screen.
// Go initializes packages in the order of their import paths if they don't depend on each other, so this package, which has almost no
// dependencies, comes before bubbletea's dependencies. A test of cmd/paictl checks that.
package noquery

import "os"

const variable = "TERM"

var terminal, isSet = os.LookupEnv(variable)

func init() {
	_ = os.Setenv(variable, "screen") // fails only for names and values that can't occur here
}

// Over restores the program's environment. main calls it first.
func Over() {
	if isSet {
		_ = os.Setenv(variable, terminal) // as above
		return
	}
	_ = os.Unsetenv(variable)
}
