package fetch

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// mirror redirects downloads of files and images to a mirror. On the mirror, the first element of the path is the upstream host, as in pull-through
// registries and file proxies. The zero value leaves all URLs unchanged.
type mirror struct{ base *url.URL }

func parseMirror(s string) (mirror, error) {
	if s == "" {
		return mirror{}, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return mirror{}, hint.Errorf("give it like this: --mirror https://mirror.example.org/prefix; a registry's password belongs in ~/.docker/config.json",
			"mirror %q is not a plain http or https URL", secret.Address(s))
	}
	return mirror{base: u}, nil
}

func (m mirror) file(upstream string) (string, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return "", fmt.Errorf("read URL: %w", err)
	}
	if m.base == nil {
		return upstream, nil
	}
	return m.base.JoinPath(u.Host, u.Path).String(), nil
}

func (m mirror) image(upstream string) (name.Reference, error) {
	ref, err := name.ParseReference(upstream, name.StrictValidation)
	if err != nil || m.base == nil {
		return ref, err
	}
	// The library uses an older name for Docker's registry than images and mirrors do.
	upstreamName := strings.Replace(ref.Context().Name(), name.DefaultRegistry+"/", "docker.io/", 1)
	repo := strings.TrimPrefix(strings.Trim(m.base.Path, "/")+"/"+upstreamName, "/")
	full := m.base.Host + "/" + repo + ":" + ref.Identifier()
	if m.base.Scheme == "http" {
		return name.ParseReference(full, name.StrictValidation, name.Insecure)
	}
	return name.ParseReference(full, name.StrictValidation)
}
