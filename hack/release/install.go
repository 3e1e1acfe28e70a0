package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
)

//go:embed install.sh
var installScript string

// installer writes install.sh, which contains the version, address and public key of the release.
func (b *build) installer() error {
	text, err := fill(installScript, map[string]string{"version": b.version, "address": b.address, "public_key": b.key()})
	if err != nil {
		return err
	}
	return os.WriteFile(b.file("install.sh", "installer"), []byte(text), 0o755) //nolint:gosec // a program
}

// key returns the public key as one word, or "" if a snapshot has no key.
func (b *build) key() string {
	if b.public == nil {
		return ""
	}
	return b.public.String()
}

// fill sets variables in a script. The lines of these variables have the form NAME='…' # set by make release.
func fill(script string, values map[string]string) (string, error) {
	for name, value := range values {
		if strings.ContainsAny(value, "'\n") {
			return "", fmt.Errorf("install.sh: the value of %s has a quote or a line break", name)
		}
		if value == "" {
			continue
		}
		before, rest, ok := strings.Cut(script, "\n"+name+"='")
		_, after, marked := strings.Cut(rest, "' # set by make release\n")
		if !ok || !marked {
			return "", fmt.Errorf("install.sh has no line for %s", name)
		}
		script = before + "\n" + name + "='" + value + "' # set by make release\n" + after
	}
	return script, nil
}
