package ssh

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// errNoTerminal means that a person can't be asked because there is no terminal.
var errNoTerminal = errors.New("no terminal to ask at")

// questions asks a person each question only once, and one question at a time.
type questions struct {
	ask     func(question string) (secret.String, error)
	person  *person
	mu      sync.Mutex
	answers map[string]secret.String
}

func (q *questions) get(question string) (secret.String, error) {
	if q.ask == nil {
		return "", errNoTerminal
	}
	defer q.person.begin()()
	q.mu.Lock()
	defer q.mu.Unlock()
	if a, ok := q.answers[question]; ok {
		return a, nil
	}
	a, err := q.ask(question)
	if err != nil {
		return "", err
	}
	if q.answers == nil {
		q.answers = map[string]secret.String{}
	}
	q.answers[question] = a
	return a, nil
}

// forget drops the answer to a question, so that the next call of get asks again.
func (q *questions) forget(question string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.answers, question)
}

// keyring loads key files. keyring reads each file only once per run.
type keyring struct {
	questions *questions
	mu        sync.Mutex
	signers   map[string]ssh.Signer
}

// load returns the key in a file. If the key is encrypted and passphrase is empty, the person is asked for the passphrase after a host has accepted
// the public key.
func (k *keyring) load(path string, passphrase secret.String) (ssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.signers[path]; ok {
		return s, nil
	}
	s, err := k.read(path, passphrase)
	if err != nil {
		return nil, err
	}
	if k.signers == nil {
		k.signers = map[string]ssh.Signer{}
	}
	k.signers[path] = s
	return s, nil
}

func (k *keyring) read(path string, passphrase secret.String) (ssh.Signer, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, hint.Errorf("check ssh-keyfile-path", "read key: %w", err)
	}
	s, err := ssh.ParsePrivateKey(pem)
	if err == nil {
		return s, nil
	}
	missing, ok := errors.AsType[*ssh.PassphraseMissingError](err)
	if !ok {
		return nil, hint.Errorf("give the private key's file, in OpenSSH or PEM format", "key %s: %w", path, err)
	}
	if passphrase.IsSet() {
		return open(path, pem, passphrase)
	}
	public := missing.PublicKey
	if public == nil {
		public = publicHalf(path)
	}
	if public == nil || k.questions.ask == nil {
		return k.unlock(path, pem)
	}
	return &lazySigner{public: public, unlock: func() (ssh.Signer, error) { return k.unlock(path, pem) }}, nil
}

// unlock asks for the passphrase of a key and returns the decrypted key.
func (k *keyring) unlock(path string, pem []byte) (ssh.Signer, error) {
	question := "passphrase of key " + path
	answer, err := k.questions.get(question)
	if err != nil {
		return nil, hint.Errorf("add the key to the agent with ssh-add, or give its passphrase", "key %s has a passphrase: %w", path, err)
	}
	s, err := open(path, pem, answer)
	if err != nil {
		k.questions.forget(question)
	}
	return s, err
}

func open(path string, pem []byte, passphrase secret.String) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase.Reveal()))
	if err != nil {
		return nil, hint.Errorf("check the passphrase", "key %s: the passphrase does not open it", path)
	}
	return s, nil
}

// publicHalf returns the public key in the .pub file of a key file, or nil.
func publicHalf(path string) ssh.PublicKey {
	line, err := os.ReadFile(path + ".pub")
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil
	}
	return key
}

// lazySigner is a signer that decrypts the private key when the first signature is made.
type lazySigner struct {
	public ssh.PublicKey
	unlock func() (ssh.Signer, error)
	once   sync.Once
	signer ssh.Signer
	err    error
}

func (s *lazySigner) PublicKey() ssh.PublicKey { return s.public }

func (s *lazySigner) Algorithms() []string {
	if s.public.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{s.public.Type()}
}

func (s *lazySigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}

func (s *lazySigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s.once.Do(func() { s.signer, s.err = s.unlock() })
	if s.err != nil {
		return nil, s.err
	}
	if a, ok := s.signer.(ssh.AlgorithmSigner); ok && slices.Contains(s.Algorithms(), algorithm) {
		return a.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.signer.Sign(rand, data)
}

func describe(path string) string { return fmt.Sprintf("key %s", path) }
