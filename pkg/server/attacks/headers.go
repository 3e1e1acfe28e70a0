package attacks

import (
	"net/http"
	"strings"
)

// headers returns attempts with headers that identify a person, change the request, or appear in the response.
func headers(w *World) []Attack {
	var out []Attack
	one := func(name, raw string, want ...int) { out = append(out, Attack{Name: name, Raw: raw, Want: want}) }
	for _, h := range [][]string{
		{"X-Forwarded-User", w.Owner}, {"X-Remote-User", w.Owner, "X-Remote-Group", "system:masters"}, {"X-Webauth-User", w.Owner}, {"Remote-User", w.Owner}, {"X-User", w.Owner, "X-Username", w.Owner},
		{"Impersonate-User", "system:admin", "Impersonate-Group", "system:masters"}, {"X-Original-Url", w.detail()}, {"X-Rewrite-Url", w.detail()}, {"X-Forwarded-For", "127.0.0.1"}, {"Forwarded", "for=127.0.0.1;by=" + w.Owner},
		{"X-Client-Cert", "x", "X-SSL-Client-Verify", "SUCCESS", "X-SSL-Client-S-DN", "CN=" + w.Owner}, {"X-Forwarded-Host", "127.0.0.1"}, {"X-Pai-Token", "x"}, {"X-Request-Id", w.Owner + "-00000000"},
	} {
		one("a header "+h[0]+" with a token", w.ask("GET", w.detail(), w.ThiefToken, h...), http.StatusNotFound)
		one("a header "+h[0]+" without a token", w.ask("GET", w.detail(), "", h...), http.StatusUnauthorized)
	}
	one("another path in a header", w.ask("GET", "/api/v2/info", w.ThiefToken, "X-Original-Url", w.detail(), "X-Rewrite-Url", w.detail(), "X-Forwarded-Uri", w.detail(), "X-Forwarded-Prefix", w.detail()), http.StatusOK)
	for _, h := range []string{"X-Http-Method-Override", "X-Method-Override", "X-Http-Method"} {
		one("another method in "+h, w.send("POST", w.place(), w.ThiefToken, "{}", h, "DELETE"), http.StatusMethodNotAllowed)
	}
	one("another method in the query", w.send("POST", w.place()+"?_method=DELETE", w.ThiefToken, "_method=DELETE", "Content-Type", "application/x-www-form-urlencoded"), http.StatusMethodNotAllowed)
	one("TRACE", w.ask("TRACE", w.detail(), w.ThiefToken), http.StatusMethodNotAllowed)
	one("an unknown method", w.ask("FETCH", w.detail(), w.ThiefToken), http.StatusMethodNotAllowed)
	one("a method in small letters", w.ask("delete", w.place(), w.ThiefToken), http.StatusMethodNotAllowed)
	one("CONNECT", w.ask("CONNECT", "127.0.0.1:6443", w.ThiefToken), http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed)
	one("CONNECT to a path", w.ask("CONNECT", w.detail(), w.ThiefToken), http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed)
	one("OPTIONS reveals no data", w.ask("OPTIONS", w.detail(), ""), http.StatusNoContent)
	one("OPTIONS for all", w.ask("OPTIONS", "*", ""), http.StatusBadRequest, http.StatusNoContent, http.StatusOK)
	for _, media := range []string{"application/xml", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/json; charset=utf-7", "text/html"} {
		one("a stop as "+media, w.send("PUT", w.detail()+"/executionType", w.ThiefToken, `{"value":"STOP"}`, "Content-Type", media), http.StatusNotFound, http.StatusBadRequest)
	}
	one("a compressed body", w.send("PUT", w.detail()+"/executionType", w.ThiefToken, "\x1f\x8b\x08\x00", "Content-Encoding", "gzip"), http.StatusNotFound, http.StatusBadRequest, http.StatusUnsupportedMediaType)
	one("an upgrade to HTTP/2", w.ask("GET", w.detail(), w.ThiefToken, "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"), http.StatusBadRequest)
	one("an upgrade of something else", w.upgrade("/api/v2/jobs", w.ThiefToken), http.StatusBadRequest)
	one("a change from a page of another origin, with a cookie", w.send("DELETE", w.place(), "", "", "Origin", "https://evil.example", "Cookie", cookie+w.OwnerToken), http.StatusForbidden)
	one("a job from a neighbouring page", w.ask("GET", w.place(), "", "Sec-Fetch-Site", "same-site", "Cookie", cookie+w.OwnerToken), http.StatusForbidden)
	one("a session ended from a page of another origin", w.ask("DELETE", "/api/v3/session", "", "Origin", "https://evil.example", "Cookie", cookie+w.OwnerToken), http.StatusForbidden)
	one("a session ended from a neighbouring page", w.ask("DELETE", "/api/v3/session", "", "Sec-Fetch-Site", "same-site", "Cookie", cookie+w.OwnerToken), http.StatusForbidden)
	one("cookies twice", w.ask("GET", "/api/v3/session", "", "Cookie", cookie+w.OwnerToken+"; "+cookie+w.ThiefToken), http.StatusUnauthorized)
	one("cookies in two headers", w.ask("GET", "/api/v3/session", "", "Cookie", cookie+w.OwnerToken, "Cookie", cookie+w.ThiefToken), http.StatusUnauthorized)
	out = append(out,
		Attack{Name: "a line in the id of a request", Raw: w.ask("GET", "/api/v2/info", "", "X-Request-Id", "abcdefgh\tSet-Cookie: x=y"), Want: []int{http.StatusOK}, Reflected: []string{"Set-Cookie"}},
		Attack{Name: "a line in the path", Raw: w.ask("GET", "/api/v2/%0d%0aSet-Cookie:%20x=y", ""), Want: nowhere, Reflected: []string{"\nSet-Cookie"}},
		Attack{Name: "a line in where to return", Raw: w.ask("GET", "/prometheus/%0d%0aSet-Cookie:%20x=y", "", "Accept", "text/html"), Want: nowhere, Reflected: []string{"\nSet-Cookie"}},
		Attack{Name: "a line in the headers that a browser may send", Raw: w.ask("OPTIONS", w.detail(), "", "Access-Control-Request-Headers", "x\ty: z"), Want: []int{http.StatusNoContent}, Reflected: []string{"\ny: z"}},
		Attack{Name: "a page in an error", Raw: w.ask("GET", "/<script>alert(1)</script>", "", "Accept", "text/html"), Want: nowhere, Reflected: []string{"<script>"}})
	one("very long headers", w.ask("GET", w.detail(), w.ThiefToken, "X-Long", strings.Repeat("x", 1<<20)), 0, http.StatusRequestHeaderFieldsTooLarge)
	one("very many headers", w.ask("GET", w.detail(), w.ThiefToken, manyHeaders(20_000)...), 0, http.StatusRequestHeaderFieldsTooLarge)
	one("a very long path", w.ask("GET", "/api/v2/jobs/"+strings.Repeat("x", 6000), w.ThiefToken), http.StatusBadRequest)
	one("a very long query", w.ask("GET", "/api/v2/jobs?x="+strings.Repeat("x", 200_000), w.ThiefToken), 0, http.StatusRequestHeaderFieldsTooLarge)
	one("a very long body", w.send("PUT", w.detail()+"/executionType", w.ThiefToken, `{"value":"`+strings.Repeat("x", 300_000)+`"}`), http.StatusRequestEntityTooLarge, http.StatusNotFound)
	return out
}

func manyHeaders(n int) []string {
	out := make([]string, 0, 2*n)
	for range n {
		out = append(out, "X-Many", "x")
	}
	return out
}
