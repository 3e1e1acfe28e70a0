package protocol

import (
	"regexp"
	"strconv"
	"strings"
)

// imageNames is the kubelets' grammar of references to images: [HOST[:PORT]/]PATH[:TAG][@DIGEST]. Its source is
// https://pkg.go.dev/github.com/distribution/reference. A host has a dot or a port; localhost, which needs neither, reads like a
// part of the path.
var imageNames = regexp.MustCompile(`^(?:(?:` + hostLabel + `(?:(?:\.` + hostLabel + `)+(?::[0-9]+)?|:[0-9]+)|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/)?` +
	`(` + pathPart + `(?:/` + pathPart + `)*)` +
	`(?::[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?` +
	`(?:@(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?$`)

const (
	hostLabel = `[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?`
	pathPart  = `[0-9a-z]+(?:(?:\.|_|__|-+)[0-9a-z]+)*`
	// imagePath is the limit of registries for the path of an image, in characters.
	imagePath = 255
)

// imageName reports whether a text is a valid name of an image.
func imageName(text string) bool {
	m := imageNames.FindStringSubmatch(text)
	return m != nil && len(m[1]) <= imagePath
}

// objectLimit leaves room in a host name, which has 63 characters, for the index of a task.
const objectLimit = 50

// objectNames returns the names of the roles in Kubernetes: the lower-case letters and digits of their names, as in
// OpenPAI. If names collide, the first role keeps the name, and the others get a number. A role whose name has no
// letters and digits gets a number, too.
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
