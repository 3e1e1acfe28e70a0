package settings

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
)

// Service is a service whose pages are proxied for signed-in users.
type Service struct {
	// URL is the service's address inside the cluster. "" disables the service.
	URL string `json:"url"`
	// Page is the page that a group must grant, monitoring or alerts. With the value administrators, only administrators can open the service.
	Page string `json:"page"`
	// Password makes the proxy send the password of the platform's own services to this service.
	Password bool `json:"password"`
}

var doorPages = []string{"monitoring", "alerts", "administrators"}

var doorName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ownPaths lists the first parts of the server's own paths, which services can't use.
var ownPaths = []string{"api", "rest-server", "oauth", "first", "sign-in", "healthz", "device", "portal"}

func (s *Settings) checkDoor() (wrong []error) {
	for _, name := range slices.Sorted(maps.Keys(s.Door)) {
		d := s.Door[name]
		if !doorName.MatchString(name) || slices.Contains(ownPaths, name) {
			wrong = append(wrong, fmt.Errorf("door.%s: a name has lower-case letters, digits and hyphens, and isn't one of the server's own paths %v", name, ownPaths))
		}
		if d.URL == "" {
			continue
		}
		wrong = append(wrong, checkURL("door."+name+".url", d.URL)...)
		if !slices.Contains(doorPages, d.Page) {
			wrong = append(wrong, fmt.Errorf("door.%s.page: %q is not one of %v", name, d.Page, doorPages))
		}
	}
	return wrong
}

// checkURL returns an error for an invalid address of a service inside the cluster. The address may be empty.
func checkURL(field, text string) []error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return []error{fmt.Errorf("%s is malformed", field)}
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		// The error doesn't contain the address, because the address may contain a password.
		return []error{fmt.Errorf("%s must be http://HOST:PORT or https://HOST:PORT, with a path at most", field)}
	}
	return nil
}
