// Package plural formats a number and a noun in correct English.
// In: a number and a noun. Out: "1 job", "2 jobs".
package plural

import (
	"strconv"
	"strings"
)

// Of returns the number followed by the noun: "0 jobs", "1 process", "2 retries".
func Of[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + Noun(n, noun)
}

// Noun returns the noun without the number, in the singular or plural as n requires. If the noun has several words, only the last word changes.
func Noun[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	last := noun[max(len(noun)-2, 0):]
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), last == "ch", last == "sh":
		return noun + "es"
	case len(last) == 2 && last[1] == 'y' && !strings.ContainsRune("aeiou", rune(last[0])):
		return noun[:len(noun)-1] + "ies"
	}
	return noun + "s"
}

// Times returns a number of repetitions as text: "once", "twice", "3 times".
func Times[N ~int | ~int32 | ~int64](n N) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.FormatInt(int64(n), 10) + " times"
}
