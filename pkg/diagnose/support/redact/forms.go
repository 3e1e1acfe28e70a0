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

// shortestEncoded is the length below which a piece of an encoding is too likely to be unrelated text.
const shortestEncoded = 8

// forms are the ways in which programs write a value, except for base64.
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

// lowerEscapes writes %2F as %2f.
func lowerEscapes(s string) string { return escape.ReplaceAllStringFunc(s, strings.ToLower) }

// inBase64 returns the forms that a value can have in the base64 of itself or of a text that contains it: three,
// by its position in that text, and each in both alphabets. Characters that also depend on the text before
// and behind the value are left out.
func inBase64(value string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString([]byte(value))
		if len(whole) >= shortestEncoded {
			out = append(out, whole)
		}
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first := (before*8 + 5) / 6           // the first character made of the value alone
			last := (before + len(value)) * 8 / 6 // behind the last one
			if core := text[first:last]; len(core) >= shortestEncoded {
				out = append(out, core)
			}
		}
		out = append(out, lines(whole)...)
		out = append(out, lines(enc.EncodeToString([]byte(value+"\n")))...)
	}
	return out
}

// lines splits an encoding into lines as programs do, 64 or 76 characters wide.
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
