package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func allRules(t *testing.T) rules {
	t.Helper()
	rs, err := parseRules(rulesFile)
	require.NoError(t, err)
	return rs
}

// examples returns the sentences in testdata for each rule, with their marks.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/sentences.txt")
	require.NoError(t, err)
	out, rule := map[string][]string{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "["):
			rule = strings.Trim(line, "[]")
		case strings.HasPrefix(line, "+ "), strings.HasPrefix(line, "- "):
			out[rule] = append(out[rule], line)
		}
	}
	return out
}

// broken returns the rules that a text breaks. If the named rule applies only to comments on declarations, the text is treated as such a comment.
func broken(rs rules, name, text string) (names []string) {
	p := passage{text: text}
	for _, r := range rs {
		if r.name == name && r.documents != nil {
			p.documents = r.documents[0]
		}
	}
	for _, s := range p.sentences("") {
		for _, f := range rs.check(s) {
			names = append(names, f.rule)
		}
	}
	return names
}

func TestEachRuleFindsItsSentences(t *testing.T) {
	rs := allRules(t)
	for name, lines := range examples(t) {
		for _, line := range lines {
			if text, found := strings.CutPrefix(line, "+ "); found {
				assert.Contains(t, broken(rs, name, text), name, text)
			}
		}
	}
}

func TestPlainSentencesHaveNoFindings(t *testing.T) {
	rs := allRules(t)
	for name, lines := range examples(t) {
		for _, line := range lines {
			if text, plain := strings.CutPrefix(line, "- "); plain {
				assert.Empty(t, broken(rs, name, text), text)
			}
		}
	}
}

func TestEachRuleHasSentencesOfBothKinds(t *testing.T) {
	table := examples(t)
	rs := allRules(t)
	for _, r := range rs {
		kinds := ""
		for _, line := range table[r.name] {
			kinds += line[:1]
		}
		assert.Contains(t, kinds, "+", r.name)
		assert.Contains(t, kinds, "-", r.name)
		assert.NotEmpty(t, r.write, r.name)
	}
	assert.Len(t, table, len(rs), "no sentences for a rule that doesn't exist")
}

func TestQuotedCodeIsNotChecked(t *testing.T) {
	assert.Empty(t, broken(allRules(t), "", "The label `what goes on` and the flag `lies in` are ignored."))
}

func TestARuleWithAnUnknownPartIsRefused(t *testing.T) {
	_, err := parseRules("[a rule]\nfinds something\n")
	require.ErrorContains(t, err, `rule "a rule": "finds" isn't a part of a rule`)
	_, err = parseRules("[a rule]\nfind (\n")
	require.ErrorContains(t, err, "a rule")
	_, err = parseRules("find something\n")
	require.ErrorContains(t, err, "before the first rule")
}
