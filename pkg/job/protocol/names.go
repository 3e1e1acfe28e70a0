package protocol

import (
	"strconv"
	"strings"
)

// objectLimit leaves room in a host name, which has 63 characters, for the index of a task.
const objectLimit = 50

// objectNames are the names of the roles in Kubernetes: lower-case letters and digits of their names, as
// OpenPAI does, and a unique name for each role. Of those that collide the first has the name, and the
// others get a number; so does a name without letters and digits.
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
