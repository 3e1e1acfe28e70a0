package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATokenIsOfOneFramework(t *testing.T) {
	key := []byte("key")
	token := Token(key, "f", "uid")
	uid, ok := CheckToken(key, "f", token)
	assert.True(t, ok)
	assert.Equal(t, "uid", uid)
	for name, wrong := range map[string]struct {
		key              []byte
		framework, token string
	}{
		"another Framework":        {key, "g", token},
		"another key":              {[]byte("other"), "f", token},
		"another UID":              {key, "f", "other" + token[3:]},
		"none":                     {key, "f", ""},
		"a UID alone":              {key, "f", "uid"},
		"a controller with no key": {nil, "f", Token(nil, "f", "uid")},
	} {
		_, ok := CheckToken(wrong.key, wrong.framework, wrong.token)
		assert.False(t, ok, name)
	}
}

func TestAMessageIsSealedForThoseWithTheToken(t *testing.T) {
	seal := Seal("token", []byte("message"))
	assert.True(t, Sealed("token", []byte("message"), seal))
	assert.False(t, Sealed("token", []byte("other"), seal))
	assert.False(t, Sealed("other", []byte("message"), seal))
	assert.False(t, Sealed("token", []byte("message"), ""))
}
