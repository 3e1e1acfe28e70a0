package password

// Fill occupies all places for concurrent checks of passwords.
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

// Guesses gives tests access to guesses.
var Guesses = guesses
