package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

const (
	// Name is the name of the program.
	Name = "paictl-history"
	// Argument is the argument with which paictl starts the program.
	Argument = "serve"
)

const install = "install it beside paictl: the archive and the packages of a release have both, and make build makes both in bin"

// Find returns the path of the program. It looks in paictl's folder, and then in PATH.
func Find() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", Name, err)
	}
	return find(self)
}

func find(self string) (string, error) {
	target, err := filepath.EvalSymlinks(self)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", Name, err)
	}
	dir := filepath.Dir(target)
	beside := filepath.Join(dir, Name)
	info, err := os.Stat(beside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", hint.Wrap(fmt.Errorf("find %s: %w", Name, err), install)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return "", hint.Errorf(install, "%s is not an executable file", beside)
	default:
		return beside, nil
	}
	inPath, err := exec.LookPath(Name)
	if err != nil {
		return "", hint.Errorf(install, "the program %s, which reads OpenPAI's database, is neither in %s nor in PATH", Name, dir)
	}
	return inPath, nil
}

// secrets returns the names of the environment variables from which clients of PostgreSQL read passwords. paictl removes these variables from the
// program's environment, which other users may see while the program runs. It sends the variables to the program together with the address.
func secrets() []string { return []string{"PGPASSWORD", "PGSSLPASSWORD"} }

// SetSecrets sets the environment variables that paictl has sent. Other users can't see them, because they see only a program's initial environment.
func SetSecrets(values map[string]string) error {
	for name, value := range values {
		if !slices.Contains(secrets(), name) {
			return fmt.Errorf("the variable %.100q isn't a password of PostgreSQL", name)
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// split separates the variables with secrets from the other variables of an environment.
func split(env []string) (others []string, withheld map[string]string) {
	withheld = map[string]string{}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		if slices.Contains(secrets(), name) {
			withheld[name] = value
		} else {
			others = append(others, variable)
		}
	}
	return others, withheld
}
