package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Seal defines how an archive is encrypted, either for recipients or with a passphrase. An archive without encryption requires Plain.
type Seal struct {
	Recipients []age.Recipient
	Passphrase secret.String
	Plain      bool
}

// Sealed returns text that describes the encryption of an archive.
func (s Seal) Sealed() string {
	switch {
	case len(s.Recipients) > 0:
		return "recipients"
	case s.Passphrase.IsSet():
		return "passphrase"
	}
	return "not encrypted"
}

func (s Seal) wrap(w io.Writer) (io.WriteCloser, error) {
	recipients := s.Recipients
	switch {
	case len(recipients) > 0 && s.Passphrase.IsSet():
		return nil, errors.New("an archive is encrypted to recipients or with a passphrase, not with both")
	case s.Passphrase.IsSet():
		r, err := age.NewScryptRecipient(s.Passphrase.Reveal())
		if err != nil {
			return nil, fmt.Errorf("encrypt with the passphrase: %w", err)
		}
		recipients = []age.Recipient{r}
	case len(recipients) == 0 && s.Plain:
		return open{w}, nil
	case len(recipients) == 0:
		return nil, errors.New("an archive holds the cluster's keys: it needs recipients or a passphrase")
	}
	out, err := age.Encrypt(w, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt the archive: %w", err)
	}
	return out, nil
}

// open is a writer whose Close doesn't close the underlying writer.
type open struct{ io.Writer }

func (open) Close() error { return nil }

// Recipients parses public keys ("age1…") in texts and in files. A text contains one key. A file contains one key per line, and comments that begin
// with #.
func Recipients(texts, files []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, t := range texts {
		r, err := age.ParseX25519Recipient(strings.TrimSpace(t))
		if err != nil {
			return nil, hint.Errorf("make a key pair with age-keygen, and give its public key", "%q is not a recipient: %w", t, err)
		}
		out = append(out, r)
	}
	for _, f := range files {
		all, err := fromFile(f, age.ParseRecipients)
		if err != nil {
			return nil, hint.Errorf("it has a public key (age1...) on each line", "recipients of %s: %w", f, err)
		}
		out = append(out, all...)
	}
	return out, nil
}

func fromFile[T any](name string, parse func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(f)
}

// Keys holds the keys that can decrypt an archive.
type Keys struct {
	Identities []age.Identity
	// Passphrase returns the passphrase of an archive. The function is nil if no passphrase is available.
	Passphrase func() (secret.String, error)
	// Plain allows an archive that isn't encrypted. Any user may have written or changed such an archive.
	Plain bool
}

// Identities reads private keys ("AGE-SECRET-KEY-…") from files, one key per line.
func Identities(files []string) ([]age.Identity, error) {
	var out []age.Identity
	for _, f := range files {
		all, err := fromFile(f, age.ParseIdentities)
		if err != nil {
			// Drop the error of age's parser, because it may contain a private key.
			if _, gone := errors.AsType[*os.PathError](err); !gone {
				err = errors.New("it can't be read as private keys")
			}
			return nil, hint.Errorf("it has a private key (AGE-SECRET-KEY-...) on each line, as age-keygen writes it", "identities of %s: %w", f, err)
		}
		out = append(out, all...)
	}
	return out, nil
}

// The first bytes of an encrypted and of a compressed archive.
const (
	ageMagic  = "age-encryption.org/"
	zstdMagic = "\x28\xb5\x2f\xfd"
	// scrypt is the prefix of the only stanza in an archive that is encrypted with a passphrase.
	scrypt = "-> scrypt "
)

func (k Keys) open(r *bufio.Reader) (io.Reader, error) {
	begin, err := r.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the backup: %w", err)
	}
	switch text := string(begin); {
	case strings.HasPrefix(text, zstdMagic) && !k.Plain:
		return nil, hint.Wrap(fmt.Errorf("%w: it isn't encrypted, so anyone may have written it", ErrKey), "if you know that it is yours: --insecure-plain")
	case strings.HasPrefix(text, zstdMagic):
		return r, nil
	case !strings.HasPrefix(text, ageMagic):
		return nil, ErrNone
	case strings.Contains(text, "\n"+scrypt):
		if k.Passphrase == nil {
			return nil, hint.Wrap(fmt.Errorf("%w: it has a passphrase", ErrKey), "give it with --passphrase-file, or on a terminal")
		}
		p, err := k.Passphrase()
		if err != nil {
			return nil, err
		}
		one, err := age.NewScryptIdentity(p.Reveal())
		if err != nil {
			return nil, hint.Wrap(fmt.Errorf("%w: %w", ErrKey, err), "type the passphrase with which it was made")
		}
		return decrypt(r, "the passphrase is wrong", one)
	case len(k.Identities) == 0:
		return nil, hint.Wrap(fmt.Errorf("%w: it is encrypted to recipients", ErrKey), "give the private key with --identity FILE")
	}
	return decrypt(r, "they belong to other recipients", k.Identities...)
}

func decrypt(r io.Reader, otherwise string, keys ...age.Identity) (io.Reader, error) {
	out, err := age.Decrypt(r, keys...)
	if _, no := errors.AsType[*age.NoIdentityMatchError](err); no {
		return nil, hint.Wrap(fmt.Errorf("%w: %s", ErrKey, otherwise), "use the key or passphrase with which it was made")
	}
	if err != nil {
		return nil, damaged(err)
	}
	return out, nil
}
