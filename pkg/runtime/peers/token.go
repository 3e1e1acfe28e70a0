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

// A task has a token of its job. With the token, it proves that it may read the job's addresses, and it verifies that the addresses come from the
// controller. Everyone who may read the job's pods can also read the token and the addresses.

// Message is the message with the addresses that the job controller sends to the tasks of a job.
type Message struct {
	Version uint64 `json:"version"` // unique among all messages
	Data    []byte `json:"data"`    // the output of Encode
	Seal    string `json:"seal"`    // the seal of the data
}

// WriteMessage writes a message as JSON. It doesn't copy the data, because all tasks of a job may get the message at the same time.
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

// Token returns the token of a Framework. It is computed with the controller's key.
func Token(key []byte, framework, uid string) string {
	return uid + "." + code(key, []byte(framework+"\n"+uid))
}

// CheckToken returns the UID in a token. ok reports whether the token is valid for a Framework with this name and UID.
func CheckToken(key []byte, framework, token string) (uid string, ok bool) {
	uid, _, _ = strings.Cut(token, ".")
	return uid, len(key) > 0 && hmac.Equal([]byte(token), []byte(Token(key, framework, uid)))
}

// OfCode returns the name that replaces the name of a Framework in the token for code. It differs from all names of Frameworks, because those contain
// no slash.
func OfCode(sha256 string) string { return "code/" + sha256 }

// Seal returns a code with which tasks that have the token can verify the sender of a message.
func Seal(token string, message []byte) string { return code([]byte(token), message) }

// Sealed reports whether a seal belongs to the message and this token.
func Sealed(token string, message []byte, seal string) bool {
	return hmac.Equal([]byte(seal), []byte(Seal(token, message)))
}

func code(key, message []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write(message) // never fails
	return hex.EncodeToString(m.Sum(nil))
}
