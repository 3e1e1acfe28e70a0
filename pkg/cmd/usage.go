package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// wanted matches the errors of cobra about the number of arguments.
var wanted = regexp.MustCompile(`^(accepts|requires at least|accepts at most|accepts between \d+ and) (\d+) arg`)

// argsError explains which arguments are missing, or that there are too many. It uses the names of the arguments in the usage line.
func argsError(c *cobra.Command, args []string, err error) error {
	usage := strings.TrimSpace(c.Parent().CommandPath() + " " + strings.TrimSuffix(c.Use, " [flags]"))
	if strings.HasPrefix(err.Error(), "unknown command ") && len(args) > 0 { // from cobra.NoArgs
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

// flagError describes a mistake in a flag in paictl's words instead of those of the flag library.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + unknown.GetSpecifiedName()
		if group := unknown.GetSpecifiedShortnames(); group != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		return fmt.Errorf("there is no flag %s%s", name, cmp.Or(instead(c, name), afterDashes(c)))
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

// unknownCommand returns an error for a command that the group c doesn't contain.
func unknownCommand(c *cobra.Command, args []string) error {
	return cmdutil.Usagef("unknown command %q for %q%s (see %s --help)", args[0], c.CommandPath(), didYouMean(c, args), c.CommandPath())
}

// prefix returns the beginning of an error about a command: the name of the command without "paictl", because all errors begin with "paictl".
func prefix(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") + ": "
}

// instead returns advice for a flag that a command doesn't have, or "" if there is no advice.
func instead(c *cobra.Command, name string) string {
	if text := foreignFlags[strings.TrimSuffix(prefix(c), ": ")][name]; text != "" {
		return ": " + text
	}
	// The user may have forgotten the -- before a command for a job or a task, so that the parser reads the flags of this command.
	if args := c.Flags().Args(); len(args) > 1 && strings.Contains(c.Use, "-- ") {
		return fmt.Sprintf(": put -- before the command and its flags: %s %s -- %s ...", c.CommandPath(), args[0], args[1])
	}
	if other := otherCase(name); len(name) == 2 && c.Flags().ShorthandLookup(other) != nil {
		return fmt.Sprintf(", did you mean -%s (--%s)?", other, c.Flags().ShorthandLookup(other).Name)
	}
	if same := likeIt(c, name); same != "" {
		return fmt.Sprintf(", did you mean %s?", same)
	}
	if len(name) == 2 { // one letter is similar to every short word
		return ""
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}

// afterDashes explains how to write an argument that begins with a dash. Names of jobs may begin with a dash.
func afterDashes(c *cobra.Command) string {
	if c.HasSubCommands() || c.ValidateArgs([]string{"x"}) != nil {
		return ""
	}
	return fmt.Sprintf("; write -- before an argument that begins with -: %s -- ...", c.CommandPath())
}

// otherCase returns a short flag with the letter in the other case, for example -n for -N.
func otherCase(name string) string {
	letter := name[len(name)-1:]
	if upper := strings.ToUpper(letter); upper != letter {
		return upper
	}
	return strings.ToLower(letter)
}

// didYouMean suggests commands for an unknown word. The word may be a typing error, a synonym, a command of another group, or a command of
// another program.
func didYouMean(c *cobra.Command, args []string) string {
	word := args[0]
	var names, longer []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if names = append(names, sub.Name()); len(word) > 1 && strings.HasPrefix(sub.Name(), word) {
			longer = append(longer, sub.Name())
		}
	}
	near := longer
	if slip := strictyaml.Nearest(word, names); slip != "" {
		near = []string{slip}
	} else if c != c.Root() {
		near = append(meaning(c, word), longer...)
	}
	if c == c.Root() && len(near) == 0 {
		near = ofNoun(c, word, args[1:])
	}
	if text := foreignCommands[word]; text != "" && len(near) == 0 && (c == c.Root() || slices.Contains([]string{"node", "job"}, c.Name())) {
		return ": " + text
	}
	if len(near) == 0 && c == c.Root() {
		near = elsewhere(c, word)
	}
	if len(near) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(near, " or ") + "?"
}

// synonyms holds lists of words with the same meaning. A group of commands uses only some of these words.
var synonyms = [][]string{
	{"delete", "remove", "rm", "del", "revoke"}, {"list", "ls"}, {"show", "get", "describe", "info", "status"}, {"add", "create", "new", "make"},
	{"set", "edit", "update", "change"}, {"stop", "cancel", "kill"}, {"submit", "apply", "create"}, {"log", "logs"},
}

// meaning returns the commands of a group that have the same meaning as a word, according to synonyms or SuggestFor.
func meaning(c *cobra.Command, word string) (out []string) {
	for _, sub := range c.Commands() {
		same := slices.ContainsFunc(synonyms, func(set []string) bool { return slices.Contains(set, word) && slices.Contains(set, sub.Name()) })
		if sub.IsAvailableCommand() && (same || slices.Contains(sub.SuggestFor, word)) {
			out = append(out, sub.Name())
		}
	}
	return out
}

// mostElsewhere limits the number of suggested commands in other groups.
const mostElsewhere = 3

// elsewhere returns the commands in other groups that have the same name or the same meaning. The commands on jobs come first.
func elsewhere(root *cobra.Command, word string) (out []string) {
	groups := slices.Clone(root.Commands())
	slices.SortStableFunc(groups, func(a, b *cobra.Command) int {
		return strings.Compare(strconv.FormatBool(a.Name() != "job"), strconv.FormatBool(b.Name() != "job"))
	})
	for _, exact := range []bool{true, false} {
		for _, group := range groups {
			for _, sub := range group.Commands() {
				if !sub.IsAvailableCommand() || len(out) == mostElsewhere {
					continue
				}
				if exact && (sub.Name() == word || sub.HasAlias(word)) || !exact && slices.Contains(sub.SuggestFor, word) {
					out = append(out, sub.CommandPath())
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// valueText describes the valid values of a flag. It returns "" if the type of the flag isn't known.
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
