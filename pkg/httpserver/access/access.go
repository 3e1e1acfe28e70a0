// Package access protects the endpoints that the platform's programs serve over the network of pods, which everyone's pods share.
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

// Names of the Secret with the password for metrics, and for the programs that read them: Prometheus, Alertmanager,
// exporters.
const (
	Secret = "metrics-access"
	// User is the name that goes with the password under KeyPassword.
	User        = "pai"
	KeyPassword = "password"
	// KeyWeb holds the same user and the hashed password, in the format of --web.config.file of Prometheus' programs.
	KeyWeb = "web.yml"
)

// AlertsSecret holds the token that Alertmanager sends with alerts to pai-alert-handler, under TokenKey.
const AlertsSecret = "alerts-token"

// Names of the Secret with the token for the job controller's API and the scheduler's API.
const (
	TokenSecret = "job-controller-token"
	TokenKey    = "token"
	// TokenHeader is the header with the token: the API server's proxy removes Authorization.
	TokenHeader = "X-Pai-Token"
)

// Metrics requires the password in a file, by basic authentication. If file is "", Metrics serves all clients: a chart that was installed without
// paictl doesn't have a password.
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

// Token requires the token in a file, in TokenHeader, and calls refuse for all other requests. If file is "", Token serves all clients.
func Token(file string, h http.Handler, refuse func(http.ResponseWriter)) http.Handler {
	return guard(file, h, func(r *http.Request) string { return r.Header.Get(TokenHeader) }, refuse)
}

// Bearer requires the token in a file as a bearer token, which Alertmanager sends to its webhooks. If file is "", Bearer rejects all requests.
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

// guard reads the file for each request, so that a renewed Secret takes effect while the program runs. If the file can't be read or is empty, all
// requests are rejected.
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

// Read returns the secret in a file of one line.
func Read(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(bytes.TrimSpace(text)), err
}

// same compares two texts in constant time, so that the time reveals neither their length nor a common prefix.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
