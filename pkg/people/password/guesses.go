package password

import (
	"github.com/trustelem/zxcvbn/match"
	"github.com/trustelem/zxcvbn/matching"
	"github.com/trustelem/zxcvbn/scoring"

	"github.com/openpai/paictl/pkg/people/password/dictionaries"
)

// guesses returns how many guesses a password takes, as zxcvbn estimates them. own are words that an attacker tries first.
func guesses(text string, own []string) float64 {
	found := matching.Omnimatch(text, own)
	for _, list := range dictionaries.Lists() {
		for _, m := range matching.Omnimatch(text, list) {
			if m.Pattern == "dictionary" {
				found = append(found, m)
			}
		}
	}
	for _, m := range found {
		// zxcvbn has estimated the repeated text without the lists. One or two characters are few guesses without them.
		if m.Pattern == "repeat" && len(m.BaseToken) > 2 {
			m.BaseGuesses = guesses(m.BaseToken, nil)
		}
	}
	match.Sort(found)
	return scoring.MostGuessableMatchSequence(text, found, false).Guesses
}
