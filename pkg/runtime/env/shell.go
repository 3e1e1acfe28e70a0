package env

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Script returns a shell script that exports the variables. The values are in single quotes, so shells don't expand them.
func Script(vars []Var) []byte {
	var b bytes.Buffer
	b.WriteString("# The variables that paictl sets for this task. Shells read them: . " + ScriptFile + "\n")
	for _, v := range vars {
		if !isName(v.Name) || strings.ContainsRune(v.Value, 0) {
			continue // neither shells nor programs can receive it
		}
		fmt.Fprintf(&b, "export %s='%s'\n", v.Name, strings.ReplaceAll(v.Value, "'", `'\''`))
	}
	return b.Bytes()
}

// ParseScript parses the output of Script. It returns an error for any other text, because it would otherwise silently ignore
// lines that a user added.
func ParseScript(data []byte) ([]Var, error) {
	var out []Var
	s := string(data)
	for line := 1; s != ""; line++ {
		if s[0] == '#' || s[0] == '\n' {
			_, s, _ = strings.Cut(s, "\n")
			continue
		}
		rest, ok := strings.CutPrefix(s, "export ")
		name, rest, found := strings.Cut(rest, "='")
		if !ok || !found || !isName(name) {
			return nil, fmt.Errorf("line %d: it isn't export NAME='VALUE'", line)
		}
		var value strings.Builder
		for {
			part, after, found := strings.Cut(rest, "'")
			if !found {
				return nil, fmt.Errorf("line %d: the quote isn't closed", line)
			}
			value.WriteString(part)
			if more, ok := strings.CutPrefix(after, `\''`); ok {
				value.WriteByte('\'')
				rest = more
				continue
			}
			if s, ok = strings.CutPrefix(after, "\n"); !ok {
				return nil, fmt.Errorf("line %d: something follows the value", line)
			}
			break
		}
		line += strings.Count(value.String(), "\n")
		out = append(out, Var{Name: name, Value: value.String()})
	}
	return out, nil
}

// isName reports whether s is a valid name of a shell variable.
func isName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// Without returns a copy of environ (see os.Environ) without the named variables.
func Without(environ []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(names, name)
	})
}

// Merge returns a copy of environ (see os.Environ) with the variables set.
func Merge(environ []string, vars []Var) []string {
	set := make(map[string]bool, len(vars))
	for _, v := range vars {
		set[v.Name] = true
	}
	out := make([]string, 0, len(environ)+len(vars))
	for _, e := range environ {
		if name, _, _ := strings.Cut(e, "="); !set[name] {
			out = append(out, e)
		}
	}
	for _, v := range vars {
		if !strings.ContainsRune(v.Value, 0) {
			out = append(out, v.Name+"="+v.Value)
		}
	}
	return out
}
