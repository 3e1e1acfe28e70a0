package services

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/release"
)

// Description describes a service in the list of services.
type Description struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Enabled     bool     `json:"enabled"`
	Namespace   string   `json:"namespace"`
	Requires    []string `json:"requires,omitempty"`
	Placement   []string `json:"placement,omitempty"`
	// Version is the version of the chart. AppVersion is the version of the installed program.
	Version    string `json:"version,omitempty"`
	AppVersion string `json:"appVersion,omitempty"`
	Source     string `json:"source"`
}

// Describe returns descriptions of all services in a configuration, sorted by name. If a chart wasn't fetched, the description contains the requested
// version.
func (d *Desired) Describe() []Description {
	var out []Description
	for _, s := range d.Catalogue.Services() {
		x := Description{
			Name: s.Name, Description: s.Description, Enabled: s.Enabled, Namespace: s.Namespace,
			Requires: s.Requires, Placement: s.Placement, Source: s.Source,
		}
		switch {
		case s.Chart != nil:
			x.Version, x.AppVersion = s.Chart.Metadata.Version, s.Chart.Metadata.AppVersion
		case s.Upstream != nil:
			x.Version = s.Upstream.Version
		}
		out = append(out, x)
	}
	return out
}

// Service returns the service with the given name, and fetches the service's chart. The service may be disabled.
func (d *Desired) Service(ctx context.Context, name string, fetcher func(*Desired) catalogue.Fetcher) (*catalogue.Service, error) {
	s, err := d.named(name)
	if err != nil {
		return nil, err
	}
	return s, d.FetchCharts(ctx, fetcher, []*catalogue.Service{s})
}

// named returns the service with the given name. The name may be an OpenPAI name. The error suggests a similar name.
func (d *Desired) named(name string) (*catalogue.Service, error) {
	known := func(name string) bool { return d.Catalogue.Get(name) != nil }
	name = catalogue.ResolveAll([]string{name}, known)[0]
	if s := d.Catalogue.Get(name); s != nil {
		return s, nil
	}
	_, err := d.Catalogue.Select([]string{name}, nil)
	return nil, err
}

// Values returns all values of the service's chart. The configuration's values override the chart's defaults. Secrets are masked.
func Values(s *catalogue.Service) (map[string]any, error) {
	values, err := chartutil.CoalesceValues(s.Chart, s.ShownValues())
	if err != nil {
		return nil, fmt.Errorf("values of %s: %w", s.Name, err)
	}
	out := values.AsMap()
	for path := range s.Credentials {
		setMask(out, strings.Split(path, "."))
	}
	return out, nil
}

// setMask inserts a mask at the path of a secret that was removed from the values.
func setMask(values map[string]any, path []string) {
	for ; len(path) > 1; path = path[1:] {
		below, ok := values[path[0]].(map[string]any)
		if !ok {
			return
		}
		values = below
	}
	values[path[0]] = secret.Mask
}

// Template returns the service's manifests for a first start with the configured version of Kubernetes. Template sends no requests to the cluster.
// Secrets are masked.
func (d *Desired) Template(s *catalogue.Service) (string, error) {
	r := request(s)
	r.Values = s.ShownValues()
	manifest, err := release.RenderOffline(r, d.Config.Kubernetes.Kubernetes.Version)
	if err != nil {
		return "", err
	}
	return MaskManifest(manifest)
}
