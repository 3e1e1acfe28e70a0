package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	whatWord  = regexp.MustCompile(`(^|[\s(])what\b`)
	questions = regexp.MustCompile(`\b(how|why|whether|which|where|who|what)\b`)

	// asking contains words that can precede an indirect question: `see what happens`.
	asking = set(`see sees saw seen know knows knew known show shows showed shown say says said decide decides decided
		determine determines determined describe describes described explain explains explained control controls
		specify specifies define defines understand choose chooses learn learns check checks ask asks asked print
		prints display displays report reports log logs test tests do does did doing matter matters out about on than
		like tell guess imagine consider figure document documents clarify remember mean verify inspect review
		preview indicate indicates match matches identify identifies affect affects unsure explore configure details
		change changes mimic that's here's it's at against`)
	adverbs = set("exactly just only not also precisely all back")
	// notClause contains words that follow "what" in ordinary questions and clauses.
	notClause = set("to if about kind kinds sort type order version versions value scope extent way we we're you i happens happened")
	pointing  = set("this that it which these those here")
	// nouns contains words that, together with a preposition, can precede an indirect question: `a description of what changed`.
	nouns = map[string][]string{
		"of": set(`track description summary idea record example sample instead regardless explanation overview understanding
			diagram copy irrespective mock-up opposite question because all more`),
		"to":   set("similar compared compare equal identical according contrary as close opposed relative up it"),
		"from": set("different differ differs apart"),
		"in":   set("order"),
	}
	pronouns = set("it them you us him her")
	giving   = set("give gives giving gave show shows showed tell ask asks asked")
)

func set(words string) []string { return strings.Fields(words) }

// whatClauses returns the places of clauses with "what" that replace a noun: `What is missing is made`, `a list of what runs`.
func whatClauses(text string) [][]int {
	var out [][]int
	for _, m := range whatWord.FindAllStringIndex(text, -1) {
		left, right := strings.Fields(text[:m[1]-len("what")]), strings.Fields(text[m[1]:])
		if isSpeech(right) || asks(left, right) {
			continue
		}
		out = append(out, []int{m[0], min(m[1]+1+len(right[0]), len(text))})
	}
	return out
}

// isSpeech reports whether the text after "what" begins an ordinary phrase: `what to do`, `what if`.
func isSpeech(right []string) bool {
	return len(right) == 0 || slices.Contains(notClause, strings.Trim(right[0], ".,:;)")) || len(right) > 1 && right[1] == "to"
}

// asks reports whether the "what" between two texts begins a direct or an indirect question.
func asks(left, right []string) bool {
	for len(left) > 0 && slices.Contains(adverbs, left[len(left)-1]) {
		left = left[:len(left)-1]
	}
	if len(left) == 0 {
		return isHeading(right)
	}
	last, previous := strings.TrimLeft(left[len(left)-1], `("`), ""
	if len(left) > 1 {
		previous = left[len(left)-2]
	}
	switch last {
	case "is", "are", "was", "were", "isn't":
		return slices.Contains(pointing, previous)
	case "of", "to", "from", "in":
		return slices.Contains(nouns[last], previous)
	case "and", "or", "but":
		return questions.MatchString(strings.Join(left, " "))
	}
	if slices.Contains(pronouns, last) {
		return slices.Contains(giving, previous)
	}
	if strings.HasSuffix(last, ",") {
		return questions.MatchString(strings.Join(left, " "))
	}
	return slices.Contains(asking, last)
}

// isHeading reports whether a text that begins with "what" is a heading rather than a sentence.
func isHeading(right []string) bool {
	last := right[len(right)-1]
	return strings.HasSuffix(last, ":") || len(right) < 4 || !strings.HasSuffix(last, ".") && len(right) < 7
}
