package secret

import "strings"

// URL returns an address for messages: without a login, a query and a fragment, which may have a password or a token in them.
func URL(text string) string {
	end, at := strings.IndexAny(text, "?#"), strings.LastIndexByte(text, '@')
	if end >= 0 && at > end { // either a password or a query has the other's character
		return "…"
	}
	if end >= 0 {
		text = text[:end] + "…"
	}
	if at >= 0 {
		text = "…" + text[at:]
	}
	return text
}
