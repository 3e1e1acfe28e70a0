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
	// URL is its address inside the cluster; "" disables it.
	URL string `json:"url"`
	// Page is the page that a group must grant: monitoring or alerts. With administrators, only administrators can see
	// it.
	Page string `json:"page"`
	// Password adds the password of the platform's own services to forwarded requests.
	Password bool `json:"password"`
}

// doorPages are the values of Service.Page.
var doorPages = []string{"monitoring", "alerts", "administrators"}

var doorName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ownPaths are the first parts of the server's own paths.
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

// checkURL checks the address of a service inside the cluster, which may be empty.
func checkURL(field, text string) []error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return []error{fmt.Errorf("%s is malformed", field)}
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		// A password in the address would be shown.
		return []error{fmt.Errorf("%s must be http://HOST:PORT or https://HOST:PORT, with a path at most", field)}
	}
	return nil
}
