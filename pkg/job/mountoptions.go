package job

import (
	"regexp"
	"slices"
	"strings"
)

// secretOption matches an option whose value is a user name, a password or a key. The option belongs to mount, or to a program that mounts. Two
// commas stand for one comma within a value.
var secretOption = regexp.MustCompile(`(?i)((?:^|[,\s])(?:-{1,2}[\w.-]*(?:pass|pwd|key|sas|secret|token|cred|user)[\w.-]*[=\s]|[\w.-]*(?:pass|pwd|key|sas|secret|token|cred|user)[\w.-]*\s*=)\s*)(?:,,|[^,])+`)

// withoutSecrets hides secret values in mount options, because volumes contain them in plain text, and every user with a grant for a storage may read
// its options.
func withoutSecrets(options []string) []string {
	var out []string
	for _, o := range options {
		out = append(out, secretOption.ReplaceAllString(o, "${1}***"))
	}
	return out
}

// mountedReadOnly reports whether mount options contain the option ro.
func mountedReadOnly(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(strings.Split(o, ","), "ro") })
}
