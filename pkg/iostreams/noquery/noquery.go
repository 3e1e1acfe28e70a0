// Package noquery keeps the terminal from being asked for its colours when the program starts.
//
// bubbletea v1 asks in its init, whatever the command: a terminal that doesn't answer makes each command
// five seconds slower, and what was typed meanwhile is lost. It doesn't ask terminals that it takes for
// screen's. Go initializes packages by import path where they don't need each other, so that this one, which
// needs next to nothing, comes before bubbletea's dependencies; a test of cmd/paictl holds that.
package noquery

import "os"

const variable = "TERM"

var terminal, isSet = os.LookupEnv(variable)

func init() {
	_ = os.Setenv(variable, "screen") // fails for names and values that can't be
}

// Over gives the program its environment back. main calls it first.
func Over() {
	if isSet {
		_ = os.Setenv(variable, terminal) // as above
		return
	}
	_ = os.Unsetenv(variable)
}
