package logapi

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/openpai/paictl/pkg/hint"
)

// These constants limit a client's expression. A repetition of ten characters can compile to thousands of instructions. Each instruction takes
// memory, and time for each line.
const (
	maxExpression   = 256 // bytes
	maxInstructions = 2000
)

// Expression compiles an expression of an untrusted client. Expression limits the memory and the time of the expression. The server and the agents
// use this function, so they reject the same expressions.
func Expression(text string) (*regexp.Regexp, error) {
	const remedy = "write a shorter one with fewer repetitions such as {0,1000}, or search in the output"
	if len(text) > maxExpression {
		return nil, hint.Errorf(remedy, "the regular expression has %d bytes, more than %d", len(text), maxExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, hint.Errorf("write \\ before a special character to match it literally", "the regular expression can't be read: %w", err)
	}
	if n := weight(parsed); n > maxInstructions {
		return nil, hint.Errorf(remedy, "the regular expression is too large: %d steps, more than %d", n, maxInstructions)
	}
	out, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("the regular expression can't be read: %w", err)
	}
	return out, nil
}

// weight returns an upper bound of the number of instructions in the compiled expression.
func weight(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += weight(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpConcat:
		return n
	case syntax.OpAlternate:
		return n + len(re.Sub)
	case syntax.OpRepeat:
		return (n+1)*max(re.Min, re.Max, 1) + 2
	}
	return n + 2
}
