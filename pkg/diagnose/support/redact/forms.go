package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// shortestEncoded is the minimum length of a piece of an encoded secret. Shorter pieces would often match unrelated text.
const shortestEncoded = 8

// forms returns a value in the notations that programs use for strings, except base64.
func forms(value string) []string {
	out := []string{
		value, quotedJSON(value, true), quotedJSON(value, false),
		strings.ReplaceAll(value, "'", "''"), strings.ReplaceAll(value, "'", `'\''`),
	}
	out = append(out, quotedJSON(out[1], true)) // JSON in JSON, such as in an annotation
	for _, u := range []string{url.QueryEscape(value), url.PathEscape(value), url.UserPassword("", value).String()[1:]} {
		out = append(out, u, lowerEscapes(u))
	}
	if len(value) >= shortestEncoded/2 {
		h := hex.EncodeToString([]byte(value))
		out = append(out, h, strings.ToUpper(h))
	}
	return out
}

func quotedJSON(value string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(value) != nil { // a string can always be encoded
		return value
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes changes percent escapes to lower case: %2F becomes %2f.
func lowerEscapes(s string) string { return escape.ReplaceAllStringFunc(s, strings.ToLower) }

// inBase64 returns the base64 forms of a value, alone or within a longer text. Each of the two alphabets has three forms, because the form depends
// on the position of the value in the text. inBase64 omits characters that also depend on the surrounding text.
func inBase64(value string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString([]byte(value))
		if len(whole) >= shortestEncoded {
			out = append(out, whole)
		}
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first := (before*8 + 5) / 6           // the first character that depends only on the value
			last := (before + len(value)) * 8 / 6 // the one after the last
			if core := text[first:last]; len(core) >= shortestEncoded {
				out = append(out, core)
			}
		}
		out = append(out, lines(whole)...)
		out = append(out, lines(enc.EncodeToString([]byte(value+"\n")))...)
	}
	return out
}

// lines splits an encoded value into lines of 64 or 76 characters, as other programs do.
func lines(whole string) []string {
	var out []string
	for _, width := range []int{64, 76} {
		for rest := whole; len(whole) > width && rest != ""; {
			n := min(width, len(rest))
			if n >= shortestEncoded {
				out = append(out, rest[:n])
			}
			rest = rest[n:]
		}
	}
	return out
}
