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
	// HeaderSignature contains "TIME:CODE": seconds since 1970, and an HMAC-SHA256 of time, method and path with the token as key, in hex. Requests
	// are sent over plain HTTP to an address that may already belong to another pod. If they contained the token itself, that pod could read all
	// logs.
	HeaderSignature = "X-Pai-Signature"
	// skew is the accepted difference between the clocks of two machines, in either direction.
	skew = 5 * time.Minute
)

// Sign signs a request, to prove that the sender has the token.
func Sign(r *http.Request, token string, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set(HeaderSignature, at+":"+code(r, token, at))
}

// Signed reports whether a request was signed with a token within the last five minutes. It returns false if token is "".
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
