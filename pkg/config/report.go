package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// reporter collects findings about one file with their positions in the file.
type reporter struct {
	file     string
	doc      *strictyaml.Document // nil if the file is not written yet
	findings Findings
}

type fieldPath = strictyaml.Path

func (r *reporter) fail(p fieldPath, rule, message, remedy string) {
	r.add(strictyaml.Error, p, rule, message, remedy)
}

func (r *reporter) warn(p fieldPath, rule, message, remedy string) {
	r.add(strictyaml.Warning, p, rule, message, remedy)
}

// warnMissing adds a warning with the given message and remedy if the file at path doesn't exist. It adds another warning if the user has no
// permission to access a folder in the path.
func (r *reporter) warnMissing(p fieldPath, rule, path, message, remedy string) {
	_, err := os.Stat(path)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.warn(p, rule, message, remedy)
	default:
		r.warn(p, rule, fmt.Sprintf("%s can't be read: %v", path, cause(err)), "check the path, and the permissions of the folders above it")
	}
}

// cause returns the cause of a failed file operation, without the name of the operation and the path.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func (r *reporter) add(s strictyaml.Severity, p fieldPath, rule, message, remedy string) {
	line, column, _ := r.doc.Position(p)
	r.findings = append(r.findings, Finding{File: r.file, Line: line, Column: column, Field: p.String(),
		Rule: rule, Severity: s, Message: message, Remedy: remedy})
}

// failIf adds an error with the given message. It does nothing if the message is "".
func (r *reporter) failIf(message string, p fieldPath, rule, remedy string) {
	if message != "" {
		r.fail(p, rule, message, remedy)
	}
}
