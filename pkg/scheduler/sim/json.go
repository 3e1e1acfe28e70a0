package sim

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// yamlOfJSON converts the escapes of JSON that YAML doesn't support to the characters that they represent. These escapes are
// escaped slashes and surrogate pairs. It returns text that isn't JSON unchanged. The number of lines stays the same.
func yamlOfJSON(data []byte) []byte {
	if text := bytes.TrimSpace(data); len(text) == 0 || text[0] != '[' && text[0] != '{' || !json.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		switch rest := data[i:]; {
		case rest[0] == 0x7f: // a control character that JSON allows
			out = append(out, `\u007f`...)
		case rest[0] != '\\':
			out = append(out, rest[0])
		case rest[1] == '/':
			out = append(out, '/')
			i++
		default:
			if r := surrogates(rest); r > 0 {
				out = utf8.AppendRune(out, r)
				i += 11
				continue
			}
			out = append(out, rest[:2]...) // the second character may be a backslash
			i++
		}
	}
	return out
}

// surrogates returns the character of two escapes, or 0 if they aren't a surrogate pair.
func surrogates(text []byte) rune {
	if len(text) < 12 || text[1] != 'u' || text[6] != '\\' || text[7] != 'u' {
		return 0
	}
	high, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	low, err2 := strconv.ParseUint(string(text[8:12]), 16, 16)
	if r := utf16.DecodeRune(rune(high), rune(low)); err == nil && err2 == nil && r != utf8.RuneError {
		return r
	}
	return 0
}
