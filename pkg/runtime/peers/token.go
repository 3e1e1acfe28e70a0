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

// A task receives a token of its job. The token proves that the task may read the job's addresses. With the token, the task
// verifies that the addresses come from the controller. Every user who may read the job's pods can also read the token and the
// addresses.

// Message contains the addresses that the job controller sends to the tasks of a job.
type Message struct {
	Version uint64 `json:"version"` // unique among all messages
	Data    []byte `json:"data"`    // the output of Encode
	Seal    string `json:"seal"`    // the seal of the data
}

// WriteMessage writes a message as JSON. It doesn't copy the data, because all tasks of a job may receive the message at the
// same time.
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

// Token computes the token of a Framework with the controller's key.
func Token(key []byte, framework, uid string) string {
	return uid + "." + code(key, []byte(framework+"\n"+uid))
}

// CheckToken returns the UID in a token. ok reports whether the token is valid for the Framework.
func CheckToken(key []byte, framework, token string) (uid string, ok bool) {
	uid, _, _ = strings.Cut(token, ".")
	return uid, len(key) > 0 && hmac.Equal([]byte(token), []byte(Token(key, framework, uid)))
}

// OfCode returns the name that the token for code contains instead of a Framework's name. Names of Frameworks contain no slash,
// so they never equal this name.
func OfCode(sha256 string) string { return "code/" + sha256 }

// Seal returns an authentication code of a message. Tasks with the token can verify the sender of the message.
func Seal(token string, message []byte) string { return code([]byte(token), message) }

// Sealed reports whether seal is the seal of the message with this token.
func Sealed(token string, message []byte, seal string) bool {
	return hmac.Equal([]byte(seal), []byte(Seal(token, message)))
}

func code(key, message []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write(message) // never fails
	return hex.EncodeToString(m.Sum(nil))
}
