package job

import (
	"regexp"
	"slices"
	"strings"
)

// secretOption matches an option of mount, or of a program that mounts, that has a user name, a password or a key as its value. Two
// commas mean one within a value.
var secretOption = regexp.MustCompile(`(?i)((?:^|[,\s])(?:-{1,2}[\w.-]*(?:pass|pwd|key|sas|secret|token|cred|user)[\w.-]*[=\s]|[\w.-]*(?:pass|pwd|key|sas|secret|token|cred|user)[\w.-]*\s*=)\s*)(?:,,|[^,])+`)

// withoutSecrets returns mount options with the values of such options hidden. Volumes have them in plain text, and everyone with a
// grant for a storage may read its options.
func withoutSecrets(options []string) []string {
	var out []string
	for _, o := range options {
		out = append(out, secretOption.ReplaceAllString(o, "${1}***"))
	}
	return out
}

// mountedReadOnly reports whether mount options forbid to write.
func mountedReadOnly(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(strings.Split(o, ","), "ro") })
}
