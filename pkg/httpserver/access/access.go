// Package access protects the endpoints of the platform's programs, because the pods of all users can connect to them.
// In: files of mounted Secrets. Out: handlers that serve only clients that know the contents of these files.
package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"
)

// Names for the Secret with the password for metrics. The programs that serve metrics need the password, and so do their readers, such as
// Prometheus.
const (
	Secret = "metrics-access"
	// User is the user name for the password under KeyPassword.
	User        = "pai"
	KeyPassword = "password"
	// KeyWeb holds the same user and the hashed password, in the format of the --web.config.file flag of Prometheus and its exporters.
	KeyWeb = "web.yml"
)

// AlertsSecret holds, under TokenKey, the token that Alertmanager sends with alerts to pai-alert-handler.
const AlertsSecret = "alerts-token"

// Names of the Secret with the token for the job controller's API and the scheduler's API.
const (
	TokenSecret = "job-controller-token"
	TokenKey    = "token"
	// TokenHeader is the HTTP header for the token. It isn't Authorization, because the API server's proxy removes that header.
	TokenHeader = "X-Pai-Token"
)

// Metrics returns a handler that requires the password in a file, by basic authentication. If file is "", Metrics returns h unchanged, because a
// chart that was installed without paictl doesn't have a password.
func Metrics(file string, h http.Handler) http.Handler {
	return guard(file, h, func(r *http.Request) string {
		user, password, _ := r.BasicAuth()
		if user != User {
			return ""
		}
		return password
	}, func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", `Basic realm="metrics"`)
		http.Error(w, "metrics require the right to read the Secret "+Secret, http.StatusUnauthorized)
	})
}

// Token returns a handler that requires the token in a file, in TokenHeader, and calls refuse for all other requests. If file is "", Token
// returns h unchanged.
func Token(file string, h http.Handler, refuse func(http.ResponseWriter)) http.Handler {
	return guard(file, h, func(r *http.Request) string { return r.Header.Get(TokenHeader) }, refuse)
}

// Bearer returns a handler that requires the token in a file as a bearer token, because Alertmanager sends bearer tokens to its webhooks. If file
// is "", the handler rejects all requests.
func Bearer(file string, h http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "alerts require the token of Alertmanager", http.StatusUnauthorized)
	}
	if file == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w) })
	}
	return guard(file, h, func(r *http.Request) string {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return token
	}, refuse)
}

// guard returns a handler that reads the file for each request, so that a renewed Secret takes effect while the program runs. If the file can't
// be read or is empty, the handler rejects all requests.
func guard(file string, h http.Handler, sent func(*http.Request) string, refuse func(http.ResponseWriter)) http.Handler {
	if file == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, err := Read(file)
		if err != nil || want == "" || !same(sent(r), want) {
			refuse(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Read returns the contents of a secret's file, without leading and trailing space.
func Read(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(bytes.TrimSpace(text)), err
}

// same compares two texts in constant time, so that the time reveals neither their length nor a common prefix.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
