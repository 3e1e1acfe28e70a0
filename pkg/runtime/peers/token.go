package peers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// A task proves with a token of its job that it may read the job's addresses. It verifies that the addresses are the controller's by a
// code that was made with that token. Anyone who may read the job's pods can also read the token and the addresses.

// Message is the job controller's message to the tasks of a job.
type Message struct {
	Version uint64 `json:"version"` // unique among all messages
	Data    []byte `json:"data"`    // the output of Encode
	Seal    string `json:"seal"`    // the seal of the data
}

// WriteMessage writes a message as JSON. All tasks of a job may get the message at the same time, so the data isn't copied.
func WriteMessage(w io.Writer, version uint64, data []byte, token string) error {
	if _, err := fmt.Fprintf(w, `{"version":%d,"data":"`, version); err != nil {
		return err
	}
	text := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := text.Write(data); err != nil {
		return err
	}
	if err := text.Close(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `","seal":"%s"}`+"\n", Seal(token, data))
	return err
}

// Token returns the token of a Framework, made with the controller's key.
func Token(key []byte, framework, uid string) string {
	return uid + "." + code(key, []byte(framework+"\n"+uid))
}

// CheckToken returns the UID of a token's Framework, and reports whether the Framework has this name.
func CheckToken(key []byte, framework, token string) (uid string, ok bool) {
	uid, _, _ = strings.Cut(token, ".")
	return uid, len(key) > 0 && hmac.Equal([]byte(token), []byte(Token(key, framework, uid)))
}

// OfCode returns the name that the token for code has instead of a Framework's. It is different from all names of
// Frameworks, because these contain no slash.
func OfCode(sha256 string) string { return "code/" + sha256 }

// Seal returns the code that authenticates a message to the tasks that have a token.
func Seal(token string, message []byte) string { return code([]byte(token), message) }

// Sealed reports whether a message was sealed with this token.
func Sealed(token string, message []byte, seal string) bool {
	return hmac.Equal([]byte(seal), []byte(Seal(token, message)))
}

func code(key, message []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write(message) // never fails
	return hex.EncodeToString(m.Sum(nil))
}
