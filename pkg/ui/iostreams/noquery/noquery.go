// Package noquery prevents queries to the terminal for its colours when the program starts.
//
// bubbletea v1 sends the query in its init, for every command: a terminal that doesn't respond makes each command five seconds slower, and text
// that is typed during that time is lost. It doesn't query terminals whose TERM begins with screen. Go initializes packages in the order of their
// import paths if they don't depend on each other, so this package, which has almost no dependencies, comes before bubbletea's dependencies. A test
// of cmd/paictl checks that.
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
