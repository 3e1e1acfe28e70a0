package logapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// HeaderSignature contains "TIME:CODE". TIME is the number of seconds since 1970. CODE is an HMAC-SHA256 of the time, the method and the path in hex,
	// with the token as key. Requests use plain HTTP, and the agent's address may already belong to another pod. If requests contained the token, that
	// pod could read all logs.
	HeaderSignature = "X-Pai-Signature"
	// skew is the accepted difference between the clocks of two machines, in either direction.
	skew = 5 * time.Minute
)

// Sign signs a request. The signature proves that the sender has the token.
func Sign(r *http.Request, token string, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set(HeaderSignature, at+":"+code(r, token, at))
}

// Signed reports whether a request was signed with the token within the last five minutes. Signed returns false if token is "".
func Signed(r *http.Request, token string, now time.Time) bool {
	at, given, _ := strings.Cut(r.Header.Get(HeaderSignature), ":")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || token == "" || now.Sub(time.Unix(seconds, 0)).Abs() > skew {
		return false
	}
	return hmac.Equal([]byte(given), []byte(code(r, token, at)))
}

func code(r *http.Request, token, at string) string {
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte(at + " " + r.Method + " " + r.URL.RequestURI())) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}
