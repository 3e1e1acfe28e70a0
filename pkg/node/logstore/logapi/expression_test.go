package logapi

import (
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

func TestAnExpressionThatWouldTakeTheMemoryIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		strings.Repeat(".{0,1000}", 110):                 "more than 256",
		strings.Repeat(".{0,1000}", 28):                  "too large",
		"(" + strings.Repeat("ab", 120) + "){1000}":      "too large",
		"(((" + strings.Repeat("x", 50) + "){9}){9}){9}": "too large",
		"a(": "can't be read",
	} {
		_, err := Expression(text)
		require.ErrorContains(t, err, says, text)
		assert.NotEmpty(t, hint.Of(err), text)
	}
	for _, text := range []string{"(?i)error|warn(ing)?", `loss=\d+\.\d{1,8}`, `^\[[^\]]{1,100}\] .*(nan|inf)$`, `(a|b){300}`, `\pL+\s*`} {
		_, err := Expression(text)
		assert.NoError(t, err, text)
	}
}

func TestTheWeightOfAnExpressionIsNotLessThanWhatItBecomes(t *testing.T) {
	for _, text := range []string{"", "abc", "(a|b|cd)*?x+", "a{3}", "a{0,7}b{2,}", "(?:ab?){5,9}", "[a-z]{10}|(x(y)){3,4}$", "(?i)k{20}", "(.{1,20}){1,20}", "((a{9}){9}){9}", "(|a){50}"} {
		parsed, err := syntax.Parse(text, syntax.Perl)
		require.NoError(t, err, text)
		program, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err, text)
		assert.GreaterOrEqual(t, weight(parsed)+3, len(program.Inst), text) // the end, and the instructions around the whole expression
	}
}
