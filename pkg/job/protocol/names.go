package protocol

import (
	"regexp"
	"strconv"
	"strings"
)

// imageNames matches image references in the grammar that kubelets use: [HOST[:PORT]/]PATH[:TAG][@DIGEST]. The grammar comes from
// https://pkg.go.dev/github.com/distribution/reference. A host contains a dot or has a port. The host localhost needs neither, and matches as a
// part of the path.
var imageNames = regexp.MustCompile(`^(?:(?:` + hostLabel + `(?:(?:\.` + hostLabel + `)+(?::[0-9]+)?|:[0-9]+)|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/)?` +
	`(` + pathPart + `(?:/` + pathPart + `)*)` +
	`(?::[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?` +
	`(?:@(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?$`)

const (
	hostLabel = `[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?`
	pathPart  = `[0-9a-z]+(?:(?:\.|_|__|-+)[0-9a-z]+)*`
	// imagePath is the maximum length in characters that registries allow for the path of an image.
	imagePath = 255
)

// imageName reports whether a text is a valid image reference.
func imageName(text string) bool {
	m := imageNames.FindStringSubmatch(text)
	return m != nil && len(m[1]) <= imagePath
}

// objectLimit is the maximum length of a role's name in Kubernetes. It leaves room for a task's index in a host name, which has at most 63
// characters.
const objectLimit = 50

// objectNames returns the names of the roles in Kubernetes. As in OpenPAI, such a name consists of the letters and digits of the role's name, in
// lower case. If the names of several roles are equal, the first role keeps the name, and a number is appended for the others. A role whose name
// contains no letters and digits also gets a name with a number.
func objectNames(roles []string) []string {
	out := make([]string, len(roles))
	taken := map[string]bool{}
	var later []int
	for i, role := range roles {
		out[i] = objectName(role)
		if out[i] == "" || taken[out[i]] {
			later = append(later, i)
			continue
		}
		taken[out[i]] = true
	}
	for _, i := range later {
		base := out[i]
		if base == "" {
			base = "role"
		}
		for n := 2; ; n++ {
			suffix := strconv.Itoa(n)
			name := base[:min(len(base), objectLimit-len(suffix))] + suffix
			if !taken[name] {
				taken[name], out[i] = true, name
				break
			}
		}
	}
	return out
}

func objectName(role string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, role)
	return name[:min(len(name), objectLimit)]
}
