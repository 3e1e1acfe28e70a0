package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// maxReleaseName is Helm's maximum length of a release name.
const maxReleaseName = 53

// upstreamService returns the service of a section that sets a chart.
func (b *builder) upstreamService(name string, section map[string]any) *Service {
	p := at(name)
	ref := ChartRef{Dir: b.cfg.Dir}
	s := &Service{Name: name, Namespace: defaultNamespace, Placement: []string{PlacementNone}, Enabled: true, Upstream: &ref}
	b.text(section, p, keyChart, &ref.Chart)
	b.text(section, p, keyVersion, &ref.Version)
	b.text(section, p, keyDigest, &ref.Digest)
	b.text(section, p, keyNamespace, &s.Namespace)
	b.boolean(section, p, keyEnabled, &s.Enabled)
	b.boolean(section, p, keyPlainHTTP, &ref.PlainHTTP)
	s.Requires, _ = b.textList(section, p, keyRequires)
	s.Source = ref.Chart
	s.Values, _ = plain(b.table(section, p, keyValues), false).(map[string]any)
	s.secretValues, _ = plain(b.table(section, p, keySecretValues), false).(map[string]any)
	b.checkUpstreamKeys(name, section)
	b.checkUpstreamNames(s)
	b.checkReference(name, ref)
	return s
}

func (b *builder) checkUpstreamKeys(name string, section map[string]any) {
	known := []string{keyChart, keyDigest, keyEnabled, keyNamespace, keyPlainHTTP, keyRequires, keySecretValues, keyValues, keyVersion}
	for _, key := range sorted(maps.Keys(section)) {
		switch {
		case slices.Contains(known, key):
		case key == keyPlacement:
			b.fail(at(name, key), "services/placement", "paictl can't place the pods of a chart that isn't its own", "write nodeSelector, affinity or tolerations below values, as the chart requires")
		default:
			message, remedy := unknownKey(key, known)
			b.fail(at(name, key), "services/section", message, remedy+"; settings of the chart itself belong below values")
		}
	}
}

func (b *builder) checkUpstreamNames(s *Service) {
	if len(validation.IsDNS1123Label(s.Name)) > 0 || len(s.Name) > maxReleaseName {
		b.fail(at(s.Name), "services/section", fmt.Sprintf("%q is not a name for a service", s.Name), fmt.Sprintf("use a-z, 0-9 and -, at most %d characters", maxReleaseName))
	}
	if len(validation.IsDNS1123Label(s.Namespace)) > 0 {
		b.fail(at(s.Name, keyNamespace), "services/section", fmt.Sprintf("%q is not a name for a namespace", s.Namespace), "use a-z, 0-9 and -")
	}
}

const referenceForms = "write oci://REGISTRY/PATH, https://REPOSITORY#NAME, https://....tgz, or a path"

// checkReference reports mistakes in a reference to a chart. These mistakes would make a fetch fail, or would make later fetches return another
// chart.
func (b *builder) checkReference(name string, ref ChartRef) {
	if ref.Chart == "" {
		b.fail(at(name, keyChart), "services/chart", "is empty", referenceForms)
		return
	}
	if !strings.Contains(ref.Chart, "://") {
		return
	}
	u, err := url.Parse(ref.Chart)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "oci" && u.Scheme != "https" && u.Scheme != "http"):
		b.fail(at(name, keyChart), "services/chart", "is not a reference to a chart", referenceForms)
		return
	case u.User != nil:
		b.fail(at(name, keyChart), "services/chart", "contains a user or a password", "remove it, and log in with: docker login, or helm repo add")
		return
	case u.Scheme != "oci" && u.Fragment == "" && !strings.HasSuffix(u.Path, ".tgz"):
		b.fail(at(name, keyChart), "services/chart", "names a repository, but no chart", "add the chart's name: "+ref.Chart+"#NAME")
	}
	if ref.Version == "" && ref.Digest == "" && (u.Scheme == "oci" || u.Fragment != "") {
		b.fail(at(name, keyChart), "services/chart", "has no version, so the chart may change at any time", "set version")
	}
	if ref.Digest == "" {
		b.warn(at(name, keyChart), "services/unpinned", "the chart is not pinned: the owner of its server can change it", "set digest to the sha256 of the archive that helm pull downloads")
	}
	if plain := u.Scheme == "http" || ref.PlainHTTP; plain && ref.Digest == "" && !isLoopback(u.Hostname()) {
		b.fail(at(name, keyChart), "services/chart", "is downloaded without TLS, so anyone on the network path can change it", "set digest, or use TLS")
	}
	if ref.Digest != "" && !digestForm.MatchString(ref.Digest) {
		b.fail(at(name, keyDigest), "services/chart", "is not a digest", "write sha256: and 64 hexadecimal digits")
	}
}

// FetchCharts fetches the charts of the upstream services in services. Several charts are downloaded concurrently. Then FetchCharts checks the
// services' values against the charts' schemas.
func (c *Catalogue) FetchCharts(ctx context.Context, f Fetcher, services []*Service) (config.Findings, error) {
	var g errgroup.Group
	g.SetLimit(4)
	errs := make([]error, len(services))
	for i, s := range services {
		if s.Upstream == nil || s.Chart != nil {
			continue
		}
		g.Go(func() error {
			chart, err := f.Fetch(ctx, *s.Upstream)
			if err != nil {
				errs[i] = fmt.Errorf("chart of %s: %w", s.Name, err)
				return nil
			}
			s.Chart, s.Description = chart, chart.Metadata.Description
			return nil
		})
	}
	_ = g.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c.checkUpstreamValues(services), nil
}

func (c *Catalogue) checkUpstreamValues(services []*Service) config.Findings {
	var out config.Findings
	for _, s := range services {
		if s.Upstream == nil {
			continue
		}
		// If the schema can't be compiled offline, only Helm checks the values.
		schema, err := newValuesSchema(s.Chart.Schema, schemaOfOthers)
		if err != nil {
			continue
		}
		for _, p := range schema.check(merge(s.Chart.Values, s.ReleaseValues())) {
			out = append(out, c.cfg.Finding(config.ServicesFile, strictyaml.Error, sectionPath(s, p.path), "services/values", p.message, p.remedy))
		}
	}
	out.Sort()
	return out
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
