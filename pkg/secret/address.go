package secret

import (
	"regexp"
	"strings"
)

// hostPort matches the host and port of a URL that contains no login.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9._-]*(:[0-9]*)?$|^\[[0-9A-Fa-f:.%]*\](:[0-9]*)?$`)

// Address returns an address in a form that messages may contain: its login, query and fragment are masked. The text doesn't need to be a valid URL,
// because some messages are about invalid URLs.
func Address(text string) string {
	scheme, login, rest := split(text)
	if login != "" {
		login = Mask + "@"
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 && i+1 < len(rest) {
		rest = rest[:i+1] + Mask
	}
	return scheme + login + rest
}

// HasLogin reports whether an address contains the name or the password of a user before the host.
func HasLogin(text string) bool {
	_, login, _ := split(text)
	return strings.Trim(login, ":") != ""
}

// split separates the login from an address. A password that isn't escaped may contain any character, so the login ends at the last @.
func split(text string) (scheme, login, rest string) {
	if i := strings.Index(text, "://"); i >= 0 {
		scheme, text = text[:i+3], text[i+3:]
	}
	authority := text
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		authority = text[:i]
	}
	at := strings.LastIndexByte(text, '@')
	if hostPort.MatchString(authority) || at < 0 || scheme == "" && strings.HasPrefix(text[at:], "@sha256:") {
		return scheme, "", text
	}
	return scheme, text[:at], text[at+1:]
}
