package attacks

import (
	"fmt"
	"net/http"
	"strings"
)

// framing returns requests that hide a second request, because a proxy could interpret their length differently from the server. The hidden request
// contains the owner's token. A proxy would have blocked this request, so the server must not respond to it.
func framing(w *World) []Attack {
	hidden := w.ask("GET", w.detail()+"/config", w.OwnerToken)
	head := func(lines ...string) string {
		return fmt.Sprintf("POST /api/v2/info HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", w.host(), strings.Join(lines, "\r\n"))
	}
	ok := []int{http.StatusOK, http.StatusBadRequest, http.StatusNotImplemented}
	bad := []int{0, http.StatusBadRequest, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported}
	var out []Attack
	one := func(name, raw string, want []int) { out = append(out, Attack{Name: name, Raw: raw, Want: want}) }
	one("a length and chunks", head("Content-Length: 6", "Transfer-Encoding: chunked")+"0\r\n\r\n"+hidden, ok)
	one("chunks and a length", head("Transfer-Encoding: chunked", fmt.Sprintf("Content-Length: %d", 5+len(hidden)))+"0\r\n\r\n"+hidden, ok)
	one("two lengths", head("Content-Length: 0", fmt.Sprintf("Content-Length: %d", len(hidden)))+hidden, bad)
	one("a list of lengths", head(fmt.Sprintf("Content-Length: 0, %d", len(hidden)))+hidden, bad)
	one("a length with a sign", head("Content-Length: +0")+hidden, bad)
	one("a negative length", head("Content-Length: -1")+hidden, bad)
	one("a length in hexadecimal", head("Content-Length: 0x0")+hidden, bad)
	one("a length that is too large", head("Content-Length: 99999999999999999999")+hidden, bad)
	for _, te := range []string{"xchunked", "chunked, identity", "identity, chunked", "chunked\x0b", "\tchunked, chunked", `"chunked"`, "chunked;q=1"} {
		one("the transfer coding "+te, head("Transfer-Encoding: "+te, "Content-Length: 0")+"0\r\n\r\n"+hidden, ok)
	}
	one("two transfer codings", head("Transfer-Encoding: chunked", "Transfer-Encoding: identity")+"0\r\n\r\n"+hidden, bad)
	one("a space before the colon", head("Transfer-Encoding : chunked", "Content-Length: 0")+"0\r\n\r\n"+hidden, bad)
	one("a header that continues in the next line", w.ask("GET", w.detail()+"/config", "", "X", "y\r\n Authorization: Bearer "+w.OwnerToken), []int{http.StatusBadRequest, http.StatusUnauthorized})
	one("a header name with a zero byte", head("X\x00: y")+hidden, bad)
	one("a header value with a zero byte", head("X: y\x00z")+hidden, bad)
	one("a carriage return alone", head("X: y\rTransfer-Encoding: chunked")+hidden, bad)
	one("a header without a name", head(": y")+hidden, bad)
	one("a chunk with a wrong size", head("Transfer-Encoding: chunked", "Connection: close")+"zz\r\nx\r\n0\r\n\r\n"+hidden, ok)
	one("a chunk with a very large size", head("Transfer-Encoding: chunked", "Connection: close")+"fffffffffffffffff\r\nx\r\n0\r\n\r\n"+hidden, ok)
	one("a chunk that ends with a line feed alone", head("Transfer-Encoding: chunked", "Connection: close")+"1\nx\n0\n\n"+hidden, ok)
	one("a trailer that is a header", head("Transfer-Encoding: chunked", "Connection: close", "Trailer: Authorization")+"0\r\nAuthorization: Bearer "+w.OwnerToken+"\r\n\r\n", ok)
	one("two hosts", fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a\r\nHost: b\r\n%s\r\n", w.detail(), as(w.ThiefToken)), bad)
	one("no host", fmt.Sprintf("GET %s HTTP/1.1\r\n%s\r\n", w.detail(), as(w.ThiefToken)), bad)
	one("a host with a path", fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a/../b\r\n%s\r\n", w.detail(), as(w.ThiefToken)), bad)
	one("HTTP/0.9", "GET "+w.detail()+"\r\n\r\n", bad)
	one("HTTP/9.9", "GET "+w.detail()+" HTTP/9.9\r\nHost: x\r\n\r\n", bad)
	one("a request line with more words", "GET "+w.detail()+" x HTTP/1.1\r\nHost: x\r\n\r\n", bad)
	one("two requests, of which the second has no token", strings.Replace(w.ask("GET", "/api/v2/info", w.OwnerToken), "Connection: close\r\n", "", 1)+w.ask("GET", "/api/v3/whoami", ""), []int{http.StatusOK, http.StatusUnauthorized})
	return out
}

// pages returns attempts to access proxied pages, with and without the thief's token.
func pages(w *World) []Attack {
	var out []Attack
	for _, path := range []string{
		"/prometheus/", "/prometheus/api/v1/query?query=up", "/prometheus/graph", "/alert-manager/", "/alert-manager/api/v2/alerts", "/rest-server/prometheus/", "/PROMETHEUS/api/v1/query",
		"/prometheus/-/quit", "/prometheus/../prometheus/", "/prometheus/%2e%2e/alert-manager/", "/prometheus/..%2f..%2f", "/prometheus//", "/prometheus/%2f", "/prometheus/\\", "/prometheus/%5c..%5c", "/prometheus/%00", "/prometheus/%252e%252e/", "/prometheus/.", "/prometheus/x/..",
		"/prometheus/..;/", "/prometheus/%c0%ae%c0%ae/", "/prometheus%2f", "/prometheus%2fapi", "/prometheus;x/", "/prometheus@127.0.0.1:9090/", "/prometheus:9090/", "/prometheus?x=/../", "/prometheus/api/v1/admin/tsdb/snapshot", "/prometheus/http://127.0.0.1:6443/",
	} {
		for _, at := range []string{"API", "pages"} {
			name, pages := "the page "+path+" at the address of the "+at, at == "pages"
			want := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound}
			guest := append([]int{http.StatusUnauthorized}, nowhere...)
			out = append(out, Attack{Name: name, Pages: pages, Raw: w.ask("GET", path, w.ThiefToken), Want: want},
				Attack{Name: name + " with a POST", Pages: pages, Raw: w.send("POST", path, w.ThiefToken, "query=up", "Content-Type", "application/x-www-form-urlencoded"), Want: want},
				Attack{Name: name + " with a cookie", Pages: pages, Raw: w.ask("GET", path, "", "Cookie", cookie+w.OwnerToken), Want: guest},
				Attack{Name: name + " without a token", Pages: pages, Raw: w.ask("GET", path, ""), Want: guest})
		}
	}
	for _, path := range []string{"/api/v3/whoami", "/api/v2/jobs", "/rest-server" + w.detail(), "/sign-in", "/oauth/token"} {
		out = append(out, Attack{Name: "the API's " + path + " at the address of the pages", Pages: true, Raw: w.ask("GET", path, w.OwnerToken), Want: hidden})
	}
	for _, guess := range []string{"", "AAAAAAAAAAAAAAAAAAAAAAAAAA", w.OwnerToken} {
		out = append(out, Attack{Name: "a guessed ticket " + guess[:min(len(guess), 8)], Pages: true, Raw: w.ask("GET", "/.ticket/prometheus?ticket="+guess, "", "Cookie", cookies+"browser=x"), Want: []int{http.StatusForbidden, http.StatusNotFound}})
	}
	out = append(out, Attack{Name: "a silence", Pages: true, Raw: w.send("POST", "/alert-manager/api/v2/silences", w.ThiefToken, "{}"), Want: forbidden},
		Attack{Name: "a WebSocket to a page", Pages: true, Raw: w.upgrade("/prometheus/", w.ThiefToken, "Origin", "https://evil.example"), Want: malformed},
		Attack{Name: "a password for the page", Pages: true, Raw: w.ask("GET", "/prometheus/", "", "Authorization", "Basic cGFpOng="), Want: unknown},
		Attack{Name: "a return to another host", Raw: w.send("POST", "/api/v3/session", "", `{"username":"no.one","password":"none","to":"//evil.example"}`), Want: []int{http.StatusBadRequest, http.StatusTooManyRequests}, Reflected: []string{"evil.example"}})
	return out
}
