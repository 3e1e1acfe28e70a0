package fetch

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v3/pkg/registry"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// fromRegistry pulls a chart from an OCI registry. fromRegistry doesn't use Helm's client, because that client doesn't support cancellation or
// limits, and falls back to plain HTTP if TLS fails.
func (f *Fetcher) fromRegistry(ctx context.Context, ref catalogue.ChartRef, repository string) ([]byte, error) {
	plain := plainHost(ref)
	opts := []name.Option{name.WithDefaultRegistry("")}
	if plain != "" {
		opts = append(opts, name.Insecure)
	}
	repo, err := name.NewRepository(repository, opts...)
	if err != nil {
		return nil, hint.Errorf("write oci://REGISTRY/PATH, and the version as version", "%q is not a repository of a registry", repository)
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(guarded{f.Transport, plain}), remote.WithAuthFromKeychain(logins{f.Registry}),
		remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Steps: 3}),
	}
	target := name.Reference(repo.Digest(ref.Digest))
	if ref.Version != "" {
		// Tags can't contain a plus sign. Like Helm, use an underscore instead.
		target = repo.Tag(strings.ReplaceAll(ref.Version, "+", "_"))
	}
	got, err := remote.Get(target, options...)
	if err != nil {
		return nil, withVersions(err, repo, ref, options)
	}
	layer, err := chartLayer(got)
	if err != nil {
		return nil, err
	}
	// Helm prints the digest of the manifest, and sha256sum prints the digest of the archive. A reference may contain either digest.
	if ref.Digest != "" && ref.Digest != got.Digest.String() && ref.Digest != layer.Digest.String() {
		return nil, wrongDigest(ref, layer.Digest.String())
	}
	return pullLayer(repo.Digest(layer.Digest.String()), options)
}

func chartLayer(got *remote.Descriptor) (v1.Descriptor, error) {
	m, err := v1.ParseManifest(bytes.NewReader(got.Manifest))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("read the manifest: %w", err)
	}
	for _, layer := range m.Layers {
		if layer.MediaType != registry.ChartLayerMediaType && layer.MediaType != registry.LegacyChartLayerMediaType {
			continue
		}
		if layer.Size > maxArchive {
			return v1.Descriptor{}, fmt.Errorf("the chart has %d MiB, more than %d", layer.Size>>20, maxArchive>>20)
		}
		return layer, nil
	}
	return v1.Descriptor{}, hint.Errorf("write the reference of a chart; images of containers belong in its values", "it contains no chart")
}

func pullLayer(ref name.Digest, options []remote.Option) ([]byte, error) {
	layer, err := remote.Layer(ref, options...)
	if err != nil {
		return nil, err
	}
	r, err := layer.Compressed() // checks the digest
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readLimited(r, maxArchive)
}

// withVersions returns an error that lists the existing versions if the requested version doesn't exist. Otherwise withVersions returns err.
func withVersions(err error, repo name.Repository, ref catalogue.ChartRef, options []remote.Option) error {
	if statusOf(err) != http.StatusNotFound || ref.Version == "" {
		return err
	}
	tags, listErr := remote.List(repo, options...)
	if listErr != nil || len(tags) == 0 {
		return err
	}
	for i, tag := range tags {
		tags[i] = strings.ReplaceAll(tag, "_", "+")
	}
	return noVersion(ref.Version, tags)
}

// noVersion returns the error for a missing version. The remedy lists up to eight existing versions, newest first.
func noVersion(version string, there []string) error {
	const most = 8
	sortVersions(there)
	more := ""
	if len(there) > most {
		there, more = there[:most], ", ..."
	}
	return hint.Errorf("the versions are "+strings.Join(slices.Compact(there), ", ")+more, "there is no version %s", version)
}

// logins returns the login in the configuration for the configured registry. For other registries, logins returns the logins of docker and podman.
type logins struct{ own config.DockerRegistry }

func (l logins) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if l.own.Username != "" && r.RegistryStr() == registryHost(l.own.Domain) {
		return authn.FromConfig(authn.AuthConfig{Username: l.own.Username, Password: l.own.Password.Reveal()}), nil
	}
	return authn.DefaultKeychain.Resolve(r)
}

// registryHost returns the library's name for a registry. docker.io has two names.
func registryHost(domain string) string {
	if r, err := name.NewRegistry(domain); err == nil {
		return r.RegistryStr()
	}
	return domain
}

// sameHost reports whether the configuration contains a login for the host of a URL.
func (l logins) sameHost(u *url.URL) bool { return l.own.Username != "" && u.Host == l.own.Domain }
