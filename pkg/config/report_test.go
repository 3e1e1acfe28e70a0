package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A path that can't be accessed must not be reported as missing, because the remedy for a missing file would not help.
func TestAPathThatCannotBeLookedUpIsNotAbsent(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                                  "",
		dir + "/a":                           "there is no a",
		"/dev/null/a":                        "there is no a",
		dir + "/" + strings.Repeat("x", 300): "can't be read: file name too long",
	} {
		r := &reporter{file: "layout.yaml"}
		r.warnMissing(nil, "layout/no-file", path, "there is no a", "make it")
		if want == "" {
			assert.Empty(t, r.findings)
			continue
		}
		if assert.Len(t, r.findings, 1, path) {
			assert.Contains(t, r.findings[0].Message, want)
			assert.Equal(t, want == "there is no a", r.findings[0].Remedy == "make it")
		}
	}
}
