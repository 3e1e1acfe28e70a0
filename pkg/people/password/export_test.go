package password

// Fill takes all places at the gate.
func Fill() (release func()) {
	for range atOnce {
		gate <- struct{}{}
	}
	return func() {
		for range atOnce {
			leave()
		}
	}
}

// Guesses is guesses, for tests.
var Guesses = guesses
