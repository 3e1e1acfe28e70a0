// Package access protects the endpoints that the platform's programs serve over the network of pods, which
// everyone's pods share.
// In: files of mounted Secrets. Out: handlers that answer only clients that know the contents of these files.
package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"
)

// The Secret that opens metrics and the programs that read them: Prometheus, Alertmanager, exporters.
const (
	Secret = "metrics-access"
	// User is the name that goes with the password under KeyPassword.
	User        = "pai"
	KeyPassword = "password"
	// KeyWeb is the same as --web.config.file of Prometheus' programs reads it, the password hashed.
	KeyWeb = "web.yml"
)

// AlertsSecret has the token with which Alertmanager sends alerts to pai-alert-handler, under TokenKey.
const AlertsSecret = "alerts-token"

// The Secret with the token for the job controller's API and the scheduler's API.
const (
	TokenSecret = "job-controller-token"
	TokenKey    = "token"
	// TokenHeader has the token: the API server's proxy removes Authorization.
	TokenHeader = "X-Pai-Token"
)

// Metrics answers clients that send the password in a file, by basic authentication. Without a file it answers
// everyone: a chart that was installed without paictl doesn't have one.
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

// Token answers clients that send the token in a file in TokenHeader, and calls refuse for all others. Without a file it
// answers everyone.
func Token(file string, h http.Handler, refuse func(http.ResponseWriter)) http.Handler {
	return guard(file, h, func(r *http.Request) string { return r.Header.Get(TokenHeader) }, refuse)
}

// Bearer answers clients that send the token in a file as a bearer token, as Alertmanager does to its webhooks. Without a file it refuses
// all clients.
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

// guard reads the file each time: a Secret that is renewed reaches it while the program runs. One that
// can't be read, or is empty, opens nothing.
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

// Read reads a secret of one line.
func Read(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(bytes.TrimSpace(text)), err
}

// same compares in a time that depends neither on the length nor on the beginning.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
