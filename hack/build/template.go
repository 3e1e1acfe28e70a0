package main

import (
	"fmt"
	"slices"
	"strings"
)

// call is the line of text/template that looks up a method by the name in a template. Because of this line, the linker keeps all exported methods of
// all types, including the types of Kubernetes' clients.
const call = "if method := ptr.MethodByName(fieldName); method.IsValid() {"

// methods returns the names of the methods that templates may call. These are all methods of the values that a chart's templates can reach; a test
// checks the list. The linker keeps methods with these names. Templates may use any field and function, and package fmt may call any method.
func methods() []string {
	var out []string
	for _, names := range []string{
		// These are the methods of .Files, .Capabilities, .Values and .Chart in Helm's templates (docs of Helm, "Built-in Objects").
		"Get GetBytes Glob AsConfig AsSecrets Lines", // Files
		"Copy GitVersion Has String",                 // Capabilities, KubeVersion, APIVersions
		"AsMap Encode PathValue Table YAML",          // Values
		"Validate",                                   // Maintainers and Dependencies of Chart
		// These are the methods of times and durations, which sprig's now, toDate and dateModify return. Our own pages use IsZero.
		"Add AddDate After AppendBinary AppendFormat AppendText Before Compare Day Equal Format GobEncode GoString Hour In IsDST IsZero Local Location",
		"MarshalBinary MarshalJSON MarshalText Minute Month Nanosecond Round Second Sub Truncate UTC Unix UnixMicro UnixMilli UnixNano Weekday Year YearDay",
		"Abs Hours Microseconds Milliseconds Minutes Nanoseconds Seconds",
		// These are the methods of versions, which sprig's semver returns.
		"GreaterThan GreaterThanEqual IncMajor IncMinor IncPatch LessThan LessThanEqual Major Metadata Minor Original Patch Prerelease Scan SetMetadata SetPrerelease",
		"UnmarshalJSON UnmarshalText Value",
		"Error",
	} {
		out = append(out, strings.Fields(names)...)
	}
	slices.Sort(out)
	return out
}

// edit returns a changed version of text/template's exec.go, in which the line call finds only the methods of the list. Their names are then
// constants, which the linker can analyze.
func edit(text string) (string, error) {
	if n := strings.Count(text, call); n != 1 {
		return "", fmt.Errorf("the line %q is in it %d times, not once: this release of Go needs another edit in hack/build/template.go, or build paictl with go build", call, n)
	}
	text = strings.Replace(text, call, "if method := methodNamed(ptr, fieldName); method.IsValid() {", 1)
	var b strings.Builder
	b.WriteString(text)
	b.WriteString("\nfunc methodNamed(v reflect.Value, name string) reflect.Value {\n\tswitch name {\n")
	for _, name := range methods() {
		fmt.Fprintf(&b, "\tcase %q:\n\t\treturn v.MethodByName(%q)\n", name, name)
	}
	b.WriteString("\t}\n\treturn reflect.Value{}\n}\n")
	return b.String(), nil
}
