package cmd

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openpai/paictl/pkg/strictyaml"
)

// wanted finds in cobra's errors how many arguments a command takes.
var wanted = regexp.MustCompile(`^(accepts|requires at least|accepts at most|accepts between \d+ and) (\d+) arg`)

// argsError says in words of the command line which arguments are missing or too many.
func argsError(c *cobra.Command, args []string, err error) error {
	usage := strings.TrimSpace(c.Parent().CommandPath() + " " + strings.TrimSuffix(c.Use, " [flags]"))
	if strings.HasPrefix(err.Error(), "unknown command ") && len(args) > 0 { // of cobra.NoArgs
		return fmt.Errorf("it takes no arguments, but got %q", args[0])
	}
	m := wanted.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	switch most, _ := strconv.Atoi(m[2]); {
	case len(args) > most && m[1] != "requires at least":
		return fmt.Errorf("unexpected argument %q: write %s", args[most], usage)
	case len(args) == 0:
		return fmt.Errorf("an argument is missing: write %s", usage)
	}
	return fmt.Errorf("an argument is missing after %q: write %s", args[len(args)-1], usage)
}

// flagError says what is wrong with a flag, without the words of the library that reads them.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + unknown.GetSpecifiedName()
		if group := unknown.GetSpecifiedShortnames(); group != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		if near := strictyaml.Nearest(name, known); near != "" {
			return fmt.Errorf("there is no flag %s, did you mean %s?", name, near)
		}
		return fmt.Errorf("there is no flag %s", name)
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value: %s", empty.GetFlag().Name, valueText(empty.GetFlag()))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := wrong.GetFlag()
		if text := valueText(f); text != "" {
			return fmt.Errorf("--%s %s: write %s", f.Name, wrong.GetValue(), text)
		}
		return fmt.Errorf("--%s: %w", f.Name, errors.Unwrap(wrong))
	}
	return err
}

// valueText says which values a flag takes; "" where the flag itself says so.
func valueText(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int32", "int64", "uint", "uint16", "uint32", "uint64":
		return "a whole number, such as 3"
	case "float64", "float32":
		return "a number, such as 0.5"
	case "duration":
		return "a duration, such as 30s, 5m or 2h"
	case "bool":
		return "true or false"
	case "string", "stringSlice", "stringArray":
		return f.Usage
	}
	return ""
}
