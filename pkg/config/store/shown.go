package store

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Shown is a configuration with masked secrets.
type Shown struct {
	// Files contains the files with secret.Mask in place of each secret, also in comments. Errors contains the files that can't be shown.
	Files  map[string][]byte
	Errors map[string]error
	// Secrets contains the masked values.
	Secrets []secret.String
}

// Show masks the secrets in files. It needs no cluster and applies no rules. If the files can't be decoded, c is nil. services-configuration.yaml
// then can't be shown, because its secret settings are unknown.
func (s *Store) Show(c *config.Cluster, dir string, files map[string][]byte) Shown {
	out := Shown{Files: map[string][]byte{}, Errors: map[string]error{}}
	for _, name := range config.Files() {
		text, there := files[name]
		if !there {
			continue
		}
		find := secretsOf(name, nil)
		if name == config.ServicesFile && c != nil {
			find = secretsOf(name, s.secretPaths(c))
		}
		shown, secrets, err := show(filepath.Join(dir, name), text, find)
		out.Secrets = append(out.Secrets, secrets...)
		if err == nil && name == config.ServicesFile && c == nil {
			err = errors.New("the configuration has mistakes, so it is unknown which settings of services are secret")
		}
		if err != nil {
			out.Errors[name] = err
			continue
		}
		out.Files[name] = shown
	}
	return out
}

// show returns a file with masked secrets, and the values of these secrets. It doesn't change values that are already masked.
func show(name string, text []byte, find func(root *yaml.Node) []found) ([]byte, []secret.String, error) {
	if bytes.Contains(text, []byte(referenceText)) {
		return nil, nil, fmt.Errorf("%s contains the text %s", name, referenceText)
	}
	root, err := parse(text)
	if err != nil {
		return nil, nil, hint.Wrap(fmt.Errorf("read %s: not readable as YAML", name), "see: paictl config validate") // yaml's message quotes the file
	}
	all := slices.DeleteFunc(find(root), func(f found) bool { return f.node.Value == secret.Mask })
	var secrets []secret.String
	for _, f := range all {
		secrets = append(secrets, secret.String(f.node.Value))
	}
	shown, parts, ok := takeOut(root, text, all)
	if !ok {
		return nil, secrets, fmt.Errorf("the secrets of %s can't be separated from the rest of the file", name)
	}
	for _, p := range parts { // those in comments, too
		secrets = append(secrets, secret.String(valueOf(p.Text)))
	}
	return bytes.ReplaceAll(shown, []byte(Reference), []byte(`"`+secret.Mask+`"`)), secrets, nil
}

// Secrets returns the values that Masked masks.
func (c *Copy) Secrets() []secret.String {
	var out []secret.String
	for _, name := range config.Files() {
		for _, p := range c.parts[name] {
			if p.Field != wholeFile {
				out = append(out, secret.String(valueOf(p.Text)))
			}
		}
	}
	return out
}
