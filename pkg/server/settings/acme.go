package settings

import (
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ACME configures a public CA that automatically signs certificates for the server's names.
type ACME struct {
	Enabled bool `json:"enabled"`
	// AcceptTerms means that the operator accepts the CA's terms of service.
	AcceptTerms bool `json:"acceptTerms"`
	// Directory is the address of the CA. "" means Let's Encrypt.
	Directory string `json:"directory"`
	Email     string `json:"email"`
	// CABundle holds the PEM certificates of the CAs that sign the certificate of the public CA's own server. "" means the CAs of the system.
	CABundle string `json:"caBundle"`
}

// PublicNames returns the names for which a public CA can sign certificates. It omits IP addresses, and names without a dot.
func (s *Settings) PublicNames() []string {
	var out []string
	for _, name := range append(slices.Clone(s.Names), s.Proxy.Name) {
		if _, err := netip.ParseAddr(name); err != nil && strings.Contains(strings.Trim(name, "."), ".") {
			out = append(out, name)
		}
	}
	return out
}

func (s *Settings) checkACME() (wrong []error) {
	a := s.ACME
	if !a.Enabled {
		return nil
	}
	if !a.AcceptTerms {
		wrong = append(wrong, errors.New("acme.acceptTerms: the authority signs only if you agree to its terms of service"))
	}
	if len(s.PublicNames()) == 0 {
		wrong = append(wrong, errors.New("acme: names has no public name, such as gpu.example.org"))
	}
	if a.Directory != "" {
		if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			wrong = append(wrong, errors.New("acme.directory must be an address that begins with https://"))
		}
	}
	if a.Email != "" {
		if at, err := mail.ParseAddress(a.Email); err != nil || at.Address != a.Email {
			wrong = append(wrong, fmt.Errorf("acme.email: %q is not an e-mail address", a.Email))
		}
	}
	return wrong
}
