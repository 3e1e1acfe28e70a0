package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"aead.dev/minisign"

	"github.com/openpai/paictl/pkg/hint"
)

// Key is the public part of a key that signs releases.
type Key struct {
	public minisign.PublicKey
}

// ID returns the key's ID in the form that minisign prints.
func (k Key) ID() string { return fmt.Sprintf("%016X", k.public.ID()) }

// String returns the key as one word, in the form that minisign's option -P accepts.
func (k Key) String() string {
	text := strings.TrimSpace(k.public.String())
	return text[strings.LastIndex(text, "\n")+1:]
}

// ReadKey parses a key. given is a word that begins with RW, or the name of a file that minisign has written. If given is empty, ReadKey returns
// PublicKey.
func ReadKey(given string) (Key, error) {
	text := given
	if text == "" {
		text = PublicKey
	}
	if text == "" {
		return Key{}, hint.Errorf("give the project's public key by --key KEY or --key FILE, from a source that you trust",
			"this paictl was built without the public key of releases, so it can't check a signature")
	}
	if key, err := parseKey(text); err == nil {
		return key, nil
	}
	data, err := os.ReadFile(text)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, hint.Errorf("write the word that begins with RW, or the path of minisign.pub", "%q is neither a public key of minisign nor a file", text)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read the public key: %w", err)
	}
	key, err := parseKey(string(data))
	if err != nil {
		return Key{}, hint.Errorf("minisign -R -p FILE writes it from the secret key", "%s contains no public key of minisign: %w", text, err)
	}
	return key, nil
}

func parseKey(text string) (Key, error) {
	var k Key
	err := k.public.UnmarshalText([]byte(strings.TrimSpace(text)))
	return k, err
}
