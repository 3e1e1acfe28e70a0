package annotation

import (
	"errors"
	"fmt"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// maxValues is the maximum number of values in a document. With aliases, a short text can contain many values.
const maxValues = 1 << 18

// document is an annotation as YAML. Its errors contain line numbers. A document without a text has no line numbers.
type document struct{ *strictyaml.Document }

func parse(text string, limit int) (document, error) {
	if len(text) > limit {
		return document{}, fmt.Errorf("it has %d bytes, more than the limit of %d", len(text), limit)
	}
	doc, findings := strictyaml.Parse("", []byte(text))
	if err := firstOf(findings); err != nil {
		return document{}, err
	}
	if doc.Values() > maxValues {
		return document{}, fmt.Errorf("it has more than %d values once aliases are expanded; write fewer", maxValues)
	}
	return document{doc}, nil
}

// decode decodes the document into out, a pointer to a struct with yaml tags.
func (d document) decode(out any) error { return firstOf(d.Decode(out)) }

// firstOf returns the first finding as an error on one line, or nil if findings is empty.
func firstOf(findings strictyaml.Findings) error {
	if len(findings) == 0 {
		return nil
	}
	f := findings[0]
	message := f.Message
	if f.Field != "" {
		message = f.Field + ": " + message
	}
	if f.Remedy != "" {
		message += "; " + f.Remedy
	}
	return onLine(f.Line, message)
}

// fault returns an error at a field. If the field is missing, the error is at the enclosing value.
func (d document) fault(path strictyaml.Path, format string, args ...any) error {
	line, _, _ := d.Position(path)
	return onLine(line, fmt.Sprintf(format, args...))
}

func onLine(line int, message string) error {
	if line == 0 {
		return errors.New(message)
	}
	return fmt.Errorf("line %d: %s", line, message)
}

// others collects unused keys. HiveD ignores unused keys, too.
type others map[string]strictyaml.Ignored

// either returns the name and the value of a field that has a current and a former name. It returns an error if both names are
// used. If both are missing, it returns the current name.
func either[T any](d document, path strictyaml.Path, field string, value *T, former string, formerValue *T) (name string, out T, err error) {
	switch {
	case value != nil && formerValue != nil:
		return "", out, d.fault(path.With(former), "%s and %s mean the same; keep one of the two", field, former)
	case value != nil:
		return field, *value, nil
	case formerValue != nil:
		return former, *formerValue, nil
	}
	return field, out, nil
}

// positive returns an error if a required number is missing, not above 0, or above maxNumber.
func (d document) positive(path strictyaml.Path, field string, n int) error {
	switch {
	case n <= 0:
		return d.fault(path, "%s is %d or missing; write a number above 0", field, n)
	case n > maxNumber:
		return d.fault(path, "%s is %d; the limit is %d", field, n, maxNumber)
	}
	return nil
}
