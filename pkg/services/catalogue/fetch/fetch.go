// Package fetch fetches upstream charts. In: a reference, which is oci://, a chart repository, a URL or a path. Out: a chart with the expected digest
// and version. Fetched charts are cached, so that a second start works offline.
package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// These constants limit a server's response. Helm's loader limits the unpacked archive to 100 MiB, and each file in the archive to 5 MiB.
const (
	maxArchive = 32 << 20
	maxIndex   = 64 << 20
)

const defaultTimeout = 2 * time.Minute

// Options defines the sources of charts and the settings of downloads.
type Options struct {
	// Cache is the folder for fetched charts. The default is the folder paictl/charts in the user's cache folder.
	Cache string
	// Bundle is the folder of a bundle, or "". Fetch uses an archive in the bundle's folder charts if the archive has the required digest.
	Bundle string
	// Registry is cluster.docker-registry. The login is sent only to the host of this registry.
	Registry  config.DockerRegistry
	Transport http.RoundTripper // nil means http.DefaultTransport
	Timeout   time.Duration     // the timeout of one chart; 0 means two minutes
}

// Fetcher fetches upstream charts. Fetcher can be used concurrently.
type Fetcher struct {
	Options
	cache cache
}

// New returns a fetcher with defaults for empty options.
func New(o Options) *Fetcher {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	return &Fetcher{Options: o, cache: newCache(o.Cache)}
}

// Fetch returns the chart of a reference, from this machine, the cache, the bundle or the network.
func (f *Fetcher) Fetch(ctx context.Context, ref catalogue.ChartRef) (*chart.Chart, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	if !strings.Contains(ref.Chart, "://") {
		c, err := local(ref)
		return checked(c, ref, err)
	}
	data := f.cache.get(ref)
	if data == nil {
		data = fromBundle(f.Bundle, ref.Digest)
	}
	if data == nil {
		var err error
		if data, err = f.download(ctx, ref); err != nil {
			return nil, explain(err, ref)
		}
		f.cache.put(ref, data)
	}
	c, err := loader.LoadArchive(bytes.NewReader(data))
	return checked(c, ref, err)
}

func (f *Fetcher) download(ctx context.Context, ref catalogue.ChartRef) ([]byte, error) {
	if rest, ok := strings.CutPrefix(ref.Chart, "oci://"); ok {
		return f.fromRegistry(ctx, ref, rest)
	}
	return f.fromServer(ctx, ref)
}

// checked returns an error if err is set, if the chart isn't the requested chart, or if the chart can't be installed.
func checked(c *chart.Chart, ref catalogue.ChartRef, err error) (*chart.Chart, error) {
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", ref.Chart, err)
	case ref.Version != "" && strings.TrimPrefix(c.Metadata.Version, "v") != strings.TrimPrefix(ref.Version, "v"):
		return nil, hint.Errorf("write that version, or the reference of the other chart", "%s is version %s, not %s", ref.Chart, c.Metadata.Version, ref.Version)
	case c.Metadata.Type == "library":
		return nil, hint.Errorf("write the reference of an application's chart", "%s is a library, which can't be installed", ref.Chart)
	}
	there := map[string]bool{}
	for _, d := range c.Dependencies() {
		there[d.Name()] = true
	}
	for _, d := range c.Metadata.Dependencies {
		if !there[d.Name] {
			return nil, hint.Errorf("add them with: helm dependency build "+ref.Chart, "%s doesn't contain the chart %s, on which it depends", ref.Chart, d.Name)
		}
	}
	return c, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func wrongDigest(ref catalogue.ChartRef, got string) error {
	return hint.Errorf("the chart was replaced, or the digest belongs to another version; check the chart before you write the new digest",
		"%s has the digest %s, not %s", ref.Chart, got, ref.Digest)
}
