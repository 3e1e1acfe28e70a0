package release

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Get downloads the list of a release and checks its signature. An empty version is the newest release of the address.
func Get(ctx context.Context, c download.Client, address, version string, key Key) (*List, error) {
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
	// Without this an old release could be served under the name of another one.
	if version != "" && l.Version != version {
		return nil, hint.Errorf("the address serves another release under this name; use another address", "%s is signed for %s, not for %s",
			secret.Address(URL(address, version, ListFile)), l.Version, version)
	}
	return l, nil
}

func unreachable(err error) error {
	return hint.Wrap(fmt.Errorf("get the release's checksums: %w", err), "name an address that this machine reaches: --address URL, or PAICTL_RELEASE_ADDRESS")
}

// Newer reports whether a release is newer than a version. A version that isn't a release counts as older than all releases.
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
