package secret

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAnAddressInAMessageHasNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"https://gpu.example.org/x":     "https://gpu.example.org/x",
		"https://ann:geheim@gpu/x":      "…@gpu/x",
		"https://ann:ge@heim@gpu":       "…@gpu",
		"https://gpu/?token=geheim":     "https://gpu/…",
		"https://gpu#token=geheim":      "https://gpu…",
		"https://ann:geheim@gpu?geheim": "…@gpu…",
		"https://ann:a?geheim@gpu":      "…",
		"https://gpu?token=a@geheim":    "…",
		"":                              "",
	} {
		assert.Equal(t, want, URL(text), text)
	}
}
