package password_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/people/password"
)

// The numbers come from zxcvbn.PasswordStrength in a program that creates all maps when it starts.
func TestGuessesAreThoseOfZxcvbn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"passwordpassword": 7, "password123456": 15000, "P@ssw0rd2019": 15000, "motherboard": 15651, "drowssap1234": 15000,
		"smithsmithsmith": 7, "correcthorsebatterystaple": 273500327700640, "abcabcabcabcabc": 66, "alice-openpai-1": 30100000000, "paictlpaictl": 15000,
		"aabbccddeeffgghh": 3056600010000, "qwertyuiop": 23, "Tr0ub4dour&3": 19058000, "j0hnsm1th1985": 9226800, "zebra lamp orbit": 81116410000000,
		"washington wilson": 100283800, "elephantelephant": 553, "x7-Kq!m2Pz9w": 1000000000001, "19851985198519": 35200, "monkeymonkeymonkey": 49,
		"Zürich-Zürich-Zürich": 3222100322200, "bovetititi": 506200, "tatatakirschner": 800398,
	} {
		assert.InEpsilon(t, want, password.Guesses(text, []string{"alice", "paictl", "openpai"}), 1e-6, text)
	}
}

func BenchmarkGuesses(b *testing.B) {
	for b.Loop() {
		password.Guesses("abcdefabcdefghijghijklmnklmnopop", []string{"alice"})
	}
}
