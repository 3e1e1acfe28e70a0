package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Readers look for the words of the field: the table "Words" of CONTRIBUTING.md, as far as a test can tell.
func TestTheDocumentsUseTheWordsOfTheField(t *testing.T) {
	instead := map[string]string{
		"tells whether": "reports whether", "somebody": "someone", "nobody": "no one", "anew": "again", "lets go of": "releases", "fickle": "unreliable", "as it were": "for example",
		"hands back": "returns", "takes them out": "removes them", "comes about": "happens",
	}
	for _, p := range everyPage(t) {
		if p.Name == "CONTRIBUTING.md" {
			continue
		}
		for at, line := range strings.Split(p.Text, "\n") {
			for word, better := range instead {
				assert.False(t, regexp.MustCompile(`(?i)\b`+word+`\b`).MatchString(line), "%s:%d: write %q instead of %q", p.Name, at+1, better, word)
			}
		}
	}
}
