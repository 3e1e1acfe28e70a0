// Package catalogue defines the services and the settings of each service. In: the embedded charts, upstream charts that the configuration refers to,
// and a cluster's configuration. Out: services with complete values, their start order, and findings about their sections of
// services-configuration.yaml.
package catalogue

import (
	"context"
	"maps"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/secret"
)

// Annotations in Chart.yaml.
const (
	// AnnotationRequires is a comma-separated list of the services that must be ready before the chart's service starts.
	AnnotationRequires = "paictl.openpai.org/requires"
	// AnnotationPlacement is a comma-separated list of the roles of the machines that run the pods. "all" means every machine, and "none" means that the
	// service has no pods.
	AnnotationPlacement = "paictl.openpai.org/placement"
	// AnnotationClaims is a YAML list of Claim. AnnotationClaims describes the volumes for the service's data.
	AnnotationClaims = "paictl.openpai.org/claims"
	// AnnotationEnabled is "false" if the service is disabled by default.
	AnnotationEnabled = "paictl.openpai.org/enabled"
	// AnnotationHostPorts is a comma-separated list of dotted paths. Each path leads to a value that is a port of a pod with host networking.
	AnnotationHostPorts = "paictl.openpai.org/host-ports"
)

// Service is a service of the catalogue.
type Service struct {
	Name        string
	Description string
	Namespace   string
	// Requires lists the services that must be ready before this service starts.
	Requires []string
	// Placement lists roles of the layout. Placement may instead contain only PlacementAll or PlacementNone.
	Placement []string
	Enabled   bool
	// Source is SourceEmbedded, or the reference of the chart, such as oci://..., https://... or a path.
	Source string
	// Chart is nil for an upstream chart that hasn't been fetched.
	Chart *chart.Chart
	// Values override the chart's defaults. Values combines the section, values from the layout, and global settings. Values contains no secrets.
	Values map[string]any
	// Credentials holds the secrets of the section, by dotted path. paictl stores Credentials in a Secret. CredentialsName returns the name of this
	// Secret, and Values contains the name.
	Credentials map[string]secret.String
	Claims      []Claim
	// Upstream is the reference to the chart of an upstream service. Upstream is nil for an embedded chart.
	Upstream *ChartRef

	// secretValues are passed to Helm with Values, because an upstream chart accepts secrets only as values.
	secretValues map[string]any
}

// PlacementAll and PlacementNone are placements that aren't roles. SourceEmbedded is the source of the charts in paictl.
const (
	PlacementAll   = "all"
	PlacementNone  = "none"
	SourceEmbedded = "embedded"
)

// Claim describes a volume for data that is kept when the service is removed.
type Claim struct {
	Name  string `yaml:"name" json:"name"`   // the name of the PersistentVolumeClaim
	Owner int64  `yaml:"owner" json:"owner"` // user and group id of the process that writes there
}

// ChartRef is a reference to an upstream chart.
type ChartRef struct {
	// Chart is oci://..., https://REPOSITORY#NAME, https://....tgz, or a path. Relative paths are relative to Dir.
	Chart   string
	Version string
	Digest  string // sha256:<hex> of the chart's archive, "" if it isn't pinned
	// PlainHTTP allows a registry without TLS. If PlainHTTP is set, Digest is required.
	PlainHTTP bool
	Dir       string // the folder of the configuration, "" if it came from a cluster
}

// Fetcher fetches upstream charts.
type Fetcher interface {
	Fetch(ctx context.Context, ref ChartRef) (*chart.Chart, error)
}

// CredentialsName returns the name of the Secret with a service's credentials.
func (s *Service) CredentialsName() string { return s.Name + "-credentials" }

// SetCredentialsRevision passes the current revision of the credentials to the chart, so that pods are replaced when the credentials change. The
// revision is a random string that changes with the Secret. The revision isn't a hash, because more people can read releases than Secrets, and a hash
// makes it possible to guess short passwords.
func (s *Service) SetCredentialsRevision(revision string) {
	if len(s.Credentials) > 0 {
		s.Values[keyCredentialsRevision] = revision
	}
}

// ReleaseValues returns Values together with the secret values of an upstream service. The result is passed to Helm and must never be printed.
func (s *Service) ReleaseValues() map[string]any { return merge(s.Values, s.secretValues) }

// ShownValues returns the same values as ReleaseValues, with masked secrets.
func (s *Service) ShownValues() map[string]any { return merge(s.Values, masked(s.secretValues)) }

// Catalogue holds the services of one configuration.
type Catalogue struct {
	cfg      *config.Cluster
	services map[string]*Service
	volumes  []LocalVolume
	// verifiesKubelets means that Prometheus verifies kubelets because paictl decided so, and not because of the section.
	verifiesKubelets bool
	// otherRelease lists the fields with image tags of another release. laterRelease means that at least one of the tags belongs to a later release than
	// this paictl.
	otherRelease []strictyaml.Path
	laterRelease bool
}

// Services returns all services, including disabled services, sorted by name.
func (c *Catalogue) Services() []*Service {
	out := make([]*Service, 0, len(c.services))
	for _, name := range c.names() {
		out = append(out, c.services[name])
	}
	return out
}

// Get returns the service with the given name, or nil.
func (c *Catalogue) Get(name string) *Service { return c.services[name] }

func (c *Catalogue) names() []string { return sorted(maps.Keys(c.services)) }

func at(service string, steps ...any) strictyaml.Path {
	return append(strictyaml.Path{service}, steps...)
}
