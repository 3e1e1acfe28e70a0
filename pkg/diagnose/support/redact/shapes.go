package redact

import (
	"bytes"
	"strings"
)

func shapes(text []byte, spans []span) []span {
	lower := bytes.ToLower(text)
	if len(lower) != len(text) { // the lower case of some letters has another length
		lower = lowerASCII(text)
	}
	spans = privateKeys(text, spans)
	spans = assignments(text, lower, spans)
	spans = headers(text, lower, spans)
	spans = logins(text, spans)
	spans = webTokens(text, spans)
	return tokens(text, spans)
}

func lowerASCII(text []byte) []byte {
	out := bytes.Clone(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

func each(text []byte, word string, visit func(at int)) {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(word))
		if i < 0 {
			return
		}
		visit(at + i)
		at += i + len(word)
	}
}

// keyLength is the maximum length of a private key in bytes, including prefixes that loggers put before each line of the key.
const keyLength = 32 << 10

const (
	keyName  = "PRIVATE KEY-----"
	keyBegin = "-----BEGIN "
	keyEnd   = "-----END "
	maxName  = 40 // of "ENCRYPTED " and the like before keyName
)

// privateKeys finds private keys in PEM by their first and last lines. In a log that was truncated within a key, it finds the rest of the key. It
// recognizes a base64-encoded key by its beginning.
func privateKeys(text []byte, spans []span) []span {
	done := 0
	each(text, keyName, func(at int) {
		if at < done {
			return
		}
		line := text[max(at-maxName, done):at]
		end := at + len(keyName)
		if i := bytes.LastIndex(line, []byte(keyBegin)); i >= 0 {
			from := at - len(line) + i
			to, whole := endOfKey(text, end)
			done = to
			spans = append(spans, span{from: from, to: to, cutFrom: from, cutTo: to, kind: PrivateKey, goesOn: !whole})
		} else if i := bytes.LastIndex(line, []byte(keyEnd)); i >= 0 {
			from := at - len(line) + i
			for from > done && isKeyText(text[from-1]) {
				from--
			}
			done = end
			spans = append(spans, span{from: from, to: end, cutFrom: from, cutTo: end, kind: PrivateKey})
		}
	})
	for _, begin := range []string{ // of "-----BEGIN PRIVATE KEY-----" and so on
		"LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0t", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt", "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0t",
		"LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ", "LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRVkt",
	} {
		each(text, begin, func(at int) {
			to := at
			for to < len(text) && (isBase64(text[to]) || text[to] == '=') {
				to++
			}
			spans = append(spans, span{from: at, to: to, cutFrom: at, cutTo: to, kind: PrivateKey, goesOn: true})
		})
	}
	return spans
}

// endOfKey returns the end of a key that began before at, and reports whether it found the key's last line.
func endOfKey(text []byte, at int) (to int, whole bool) {
	rest := text[at:min(at+keyLength, len(text))]
	if i := bytes.Index(rest, []byte(keyEnd)); i >= 0 {
		if j := bytes.Index(rest[i:min(i+len(keyEnd)+maxName+len(keyName), len(rest))], []byte(keyName)); j >= 0 {
			return at + i + j + len(keyName), true
		}
	}
	to = at
	for to < len(text) && isKeyText(text[to]) {
		to++
	}
	return to, false
}

// isKeyText reports whether a byte may be part of a key: base64, a space, or the end of a line. The end of a line may be escaped.
func isKeyText(c byte) bool {
	return isBase64(c) || strings.IndexByte("=\n\r\t \\", c) >= 0
}

func isBase64(c byte) bool { return isAlnum(c) || c == '+' || c == '/' }

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }

// secretNames returns suffixes of names of secrets, in lower case.
func secretNames() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "api_key", "api-key", "apikey", "access_key", "access-key", "accesskey",
		"secret_key", "secret-key", "secretkey", "private_key", "private-key", "privatekey", "account_key", "account-key", "accountkey",
		"client-key-data", "certificate-key", "credential", "credentials", "cookie",
	}
}

// IsSecretName reports whether a name looks like the name of a secret.
func IsSecretName(name string) bool {
	name = strings.TrimRight(strings.ToLower(name), "0123456789")
	for _, w := range secretNames() {
		if strings.HasSuffix(strings.TrimRight(name, "_-"), w) {
			return true
		}
	}
	return false
}

// assignments finds values of flags, and values after a name with a secret suffix and : or =.
func assignments(text, lower []byte, spans []span) []span {
	for _, w := range secretNames() {
		each(lower, w, func(at int) {
			if s, ok := assignment(text, at, at+len(w)); ok {
				spans = append(spans, s)
			}
		})
	}
	return spans
}

// maxKey is the maximum length of a name before its last word.
const maxKey = 64

func assignment(text []byte, at, end int) (span, bool) {
	from := at
	for from > 0 && at-from < maxKey && (isWord(text[from-1]) || text[from-1] == '.') {
		from--
	}
	for end < len(text) && (text[end] >= '0' && text[end] <= '9') {
		end++
	}
	if isCount(text, end) || isExplained(text, from, end) {
		return span{}, false
	}
	flag := bytes.HasPrefix(text[from:at+1], []byte("-"))
	i := blanks(text, afterQuote(text, end))
	switch {
	case i < len(text) && text[i] == '=':
		for i < len(text) && (text[i] == '=' || text[i] == '>') {
			i++
		}
	case i < len(text) && text[i] == ':':
		i++
		if i < len(text) && text[i] == '=' {
			i++
		}
		if bytes.HasPrefix(text[i:], []byte("//")) {
			return span{}, false
		}
	case flag && i > end && i < len(text):
		return value(text, from, i, false)
	default:
		return span{}, false
	}
	atLineStart := i-1 > 0 && text[i-1] == ':' && startsLine(text, from)
	return value(text, from, blanks(text, i), atLineStart)
}

// isExplained reports whether a position is in the comment that marks a secret field in the configuration files. This comment begins with
// "## Secret: ".
func isExplained(text []byte, from, end int) bool {
	const before = "## "
	return from >= len(before) && string(text[from-len(before):from]) == before && string(text[from:end]) == "Secret"
}

// isCount reports whether a quoted JSON name that ends at end has a number as its value, as in {"token": 3}.
func isCount(text []byte, end int) bool {
	named := afterQuote(text, end)
	i := blanks(text, named)
	if named == end || i >= len(text) || text[i] != ':' {
		return false
	}
	i = blanks(text, i+1)
	return i < len(text) && text[i] >= '0' && text[i] <= '9'
}

// startsLine reports whether only YAML markers precede a name on its line.
func startsLine(text []byte, at int) bool {
	for at > 0 && strings.IndexByte(" \t-'\"", text[at-1]) >= 0 {
		at--
	}
	return at == 0 || text[at-1] == '\n'
}

// afterQuote returns the position after the quote that ends a name. The quote may be escaped.
func afterQuote(text []byte, i int) int {
	_, i = quote(text, i)
	return i
}

// quote returns a quote together with the backslashes before it, and the position after the quote. If the text has no quote at i, it returns "".
func quote(text []byte, i int) (string, int) {
	end := i
	for end < len(text) && text[end] == '\\' && end-i < 8 {
		end++
	}
	if end < len(text) && (text[end] == '"' || text[end] == '\'') {
		return string(text[i : end+1]), end + 1
	}
	return "", i
}

func blanks(text []byte, i int) int {
	for n := 0; i < len(text) && n < 64 && (text[i] == ' ' || text[i] == '\t'); n++ {
		i++
	}
	return i
}

// value finds the value that begins at i. The argument line means that the value may extend to the end of its line.
func value(text []byte, from, i int, line bool) (span, bool) {
	q, start := quote(text, i)
	to := start
	switch {
	case q != "":
		to = closing(text, start, q)
	case start < len(text) && (text[start] == '|' || text[start] == '>') && line:
		start, to = block(text, from, start)
	case start < len(text) && strings.IndexByte("{[<&*%", text[start]) >= 0:
		return span{}, false
	case line:
		to = endOfLine(text, start)
	default:
		for to < len(text) && !endsValue(text, to) {
			to++
		}
	}
	if !isSecretValue(string(text[start:min(to, start+64)])) {
		return span{}, false
	}
	return span{from: from, to: to, cutFrom: start, cutTo: to, kind: Password, goesOn: true}, true
}

// closing returns the position of the closing quote of a text that began with the quote q. Without a closing quote, it returns the end of the line.
func closing(text []byte, i int, q string) int {
	mark := q[len(q)-1]
	for n := 0; i < len(text) && text[i] != '\n'; i++ {
		switch {
		case text[i] == '\\':
			n++
			continue
		case text[i] == mark && (n < len(q) || mark == '\'') && n == len(q)-1:
			return i - n
		case text[i] == mark && n < len(q)-1: // a quote of the surrounding text
			return i - n
		}
		n = 0
	}
	return i
}

// block finds the lines of a YAML block scalar that belong to a key. These lines have more indentation than the key.
func block(text []byte, key, i int) (start, to int) {
	begin := bytes.LastIndexByte(text[:key], '\n') + 1
	start = min(endOfLine(text, i)+1, len(text))
	for to = start; to < len(text); {
		end := endOfLine(text, to)
		l := text[to:end]
		indent := len(l) - len(bytes.TrimLeft(l, " "))
		if len(bytes.TrimSpace(l)) > 0 && indent <= key-begin {
			break
		}
		to = min(end+1, len(text))
	}
	for to > start && text[to-1] == '\n' {
		to--
	}
	return start, max(to, start)
}

func endOfLine(text []byte, i int) int {
	if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(text)
}

func endsValue(text []byte, i int) bool {
	c := text[i]
	if c <= ' ' || strings.IndexByte("\"'&`", c) >= 0 {
		return true
	}
	if c == '\\' && i+1 < len(text) && strings.IndexByte("\"'nrt", text[i+1]) >= 0 {
		return true
	}
	if strings.IndexByte(",;)}]", c) < 0 {
		return false
	}
	return i+1 == len(text) || text[i+1] <= ' ' || strings.IndexByte("\"'`,;)}]\\", text[i+1]) >= 0
}

// isSecretValue reports whether a text may be a secret value. It returns false for words such as true or none, which only show whether a value is
// set.
func isSecretValue(v string) bool {
	v = strings.TrimSpace(v)
	switch strings.ToLower(strings.Trim(v, `"',`)) {
	case "", "true", "false", "null", "nil", "none", "~", "yes", "no":
		return false
	}
	return strings.Trim(v, "*") != "" && !strings.HasPrefix(v, markStart)
}

func headers(text, lower []byte, spans []span) []span {
	each(lower, "authorization", func(at int) {
		end := at + len("authorization")
		i := blanks(text, afterQuote(text, end))
		if isCount(text, end) || i >= len(text) || text[i] != ':' && text[i] != '=' {
			return
		}
		i = blanks(text, i+1)
		if i < len(text) && text[i] == '[' { // as Go prints headers
			i++
		}
		q, start := quote(text, i)
		to := endOfLine(text, start)
		if q != "" {
			to = closing(text, start, q)
		} else if n := bytes.IndexAny(text[start:to], "\"'`]"); n >= 0 {
			to = start + n
		}
		if isSecretValue(string(text[start:min(to, start+64)])) {
			spans = append(spans, span{from: at, to: to, cutFrom: start, cutTo: to, kind: Authorization, goesOn: true})
		}
	})
	for _, scheme := range []string{"bearer ", "basic "} {
		each(lower, scheme, func(at int) {
			start := blanks(text, at+len(scheme))
			to := start
			for to < len(text) && (isWord(text[to]) || strings.IndexByte(".~+/=", text[to]) >= 0) {
				to++
			}
			// Words such as "authentication" after "basic" are not tokens.
			if word := text[start:to]; len(word) >= 20 || len(word) >= 8 && bytes.ContainsAny(word, "0123456789+/=") {
				spans = append(spans, span{from: at, to: to, cutFrom: start, cutTo: to, kind: Authorization, goesOn: true})
			}
		})
	}
	return spans
}

// maxLogin is the maximum length of the user and the password in a URL.
const maxLogin = 1024

// logins finds passwords in URLs of the form scheme://user:password@host. A long user name without a password counts as a token.
func logins(text []byte, spans []span) []span {
	each(text, "://", func(at int) {
		start := at + len("://")
		end := start
		for end < len(text) && end-start < maxLogin && text[end] > ' ' && strings.IndexByte("/?#\"'<>`\\", text[end]) < 0 {
			end++
		}
		login := bytes.LastIndexByte(text[start:end], '@')
		if login < 0 {
			return
		}
		from := start + bytes.IndexByte(text[start:start+login], ':') + 1
		if from == start && login < 20 {
			return
		}
		if isSecretValue(string(text[from : start+login])) {
			spans = append(spans, span{from: at, to: start + login + 1, cutFrom: from, cutTo: start + login, kind: URLPassword})
		}
	})
	return spans
}

// webTokens finds JSON web tokens, which consist of two or three base64 parts. The first two parts encode JSON.
func webTokens(text []byte, spans []span) []span {
	done := 0
	each(text, "eyJ", func(at int) {
		if at < done || at > 0 && isWord(text[at-1]) {
			return
		}
		part := func(i int) int {
			for i < len(text) && isWord(text[i]) {
				i++
			}
			return i
		}
		first := part(at)
		if first-at < 10 || first >= len(text) || text[first] != '.' {
			return
		}
		to := part(first + 1)
		if to-first < 10 {
			return
		}
		if to < len(text) && text[to] == '.' {
			to = part(to + 1)
		}
		done = to
		spans = append(spans, span{from: at, to: to, cutFrom: at, cutTo: to, kind: JWT, goesOn: true})
	})
	return spans
}

// tokenShapes returns the prefixes of tokens of well-known services, and the minimum length of each token. Tokens consist of letters, digits, _ and
// -. The sources are the services' own descriptions of their formats.
func tokenShapes() map[string]int {
	return map[string]int{
		"AKIA": 20, "ASIA": 20, // AWS
		"ghp_": 40, "gho_": 40, "ghu_": 40, "ghs_": 40, "ghr_": 40, "github_pat_": 33, "glpat-": 26, // GitHub, GitLab
		"hf_": 33, "sk-": 32, "AIza": 39, "xoxb-": 24, "xoxp-": 24, "xoxa-": 24, "xoxr-": 24, "xoxs-": 24, "npm_": 40, "dckr_pat_": 36,
	}
}

func tokens(text []byte, spans []span) []span {
	for begin, least := range tokenShapes() {
		each(text, begin, func(at int) {
			if at > 0 && (isAlnum(text[at-1]) || text[at-1] == '_') {
				return
			}
			to := at
			for to < len(text) && isWord(text[to]) {
				to++
			}
			if to-at >= least {
				spans = append(spans, span{from: at, to: to, cutFrom: at, cutTo: to, kind: Token, goesOn: true})
			}
		})
	}
	return spans
}
