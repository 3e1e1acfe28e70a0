package release

import (
	"context"
	"fmt"
	"net/url"

	"github.com/Masterminds/semver/v3"

	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Get downloads the list of a release and checks the list's signature. If version is empty, it downloads the list of the newest release at the
// address.
func Get(ctx context.Context, c download.Client, address, version string, key Key) (*List, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	text, err := c.Text(ctx, URL(address, version, ListFile))
	if err != nil {
		return nil, unreachable(err)
	}
	signature, err := c.Text(ctx, URL(address, version, SignatureFile))
	if err != nil {
		return nil, unreachable(err)
	}
	l, err := Open(text, signature, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", secret.Address(URL(address, version, ListFile)), err)
	}
	// Without this check, an old release could be served under the name of another release.
	if version != "" && l.Version != version {
		return nil, hint.Errorf("the address serves another release under this name; use another address", "%s is signed for %s, not for %s",
			secret.Address(URL(address, version, ListFile)), l.Version, version)
	}
	return l, nil
}

// checkAddress returns an error if the address isn't the address of a folder, because the names of files are appended to the address.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return hint.Errorf("write https://HOST/PATH, without a query: --address URL, or PAICTL_RELEASE_ADDRESS",
			"%s is not an address below which releases are published", secret.Address(address))
	}
	return nil
}

func unreachable(err error) error {
	return hint.Wrap(fmt.Errorf("get the release's checksums: %w", err), "name an address that this machine reaches: --address URL, or PAICTL_RELEASE_ADDRESS")
}

// Newer reports whether a release is newer than a version. It treats a version that isn't a release as older than all releases.
func Newer(released, than string) (bool, error) {
	r, err := semver.NewVersion(released)
	if err != nil {
		return false, fmt.Errorf("version %q of the newest release: %w", released, err)
	}
	v, err := semver.NewVersion(than)
	if err != nil {
		return true, nil //nolint:nilerr // a build without a version
	}
	return r.GreaterThan(v), nil
}
