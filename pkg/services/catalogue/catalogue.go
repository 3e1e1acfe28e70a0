// Package catalogue defines the services and the settings of each service.
// In: the embedded charts, upstream charts that the configuration names, and a cluster's configuration. Out: services with complete values, the
// order of their start, and findings about their sections of services-configuration.yaml.
package catalogue

import (
	"context"
	"maps"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/secret"
)

// Annotations in a Chart.yaml that paictl reads.
const (
	// AnnotationRequires lists the services that must be ready before the service of the chart starts, separated by commas.
	AnnotationRequires = "paictl.openpai.org/requires"
	// AnnotationPlacement lists the roles of the machines that run the pods, separated by commas. "all" means every machine, and "none" means that
	// the service has no pods.
	AnnotationPlacement = "paictl.openpai.org/placement"
	// AnnotationClaims is a YAML list of Claim. It describes the volumes for the service's data.
	AnnotationClaims = "paictl.openpai.org/claims"
	// AnnotationEnabled is "false" if the service is disabled by default.
	AnnotationEnabled = "paictl.openpai.org/enabled"
	// AnnotationHostPorts lists the values that are ports on machines, of pods with host networking. It contains dotted paths, separated by commas.
	AnnotationHostPorts = "paictl.openpai.org/host-ports"
)

// Service is one service of the catalogue.
type Service struct {
	Name        string
	Description string
	Namespace   string
	// Requires lists the services that must be ready before this service starts.
	Requires []string
	// Placement lists roles of the layout. It may instead contain only PlacementAll or PlacementNone.
	Placement []string
	Enabled   bool
	// Source is SourceEmbedded or the reference of the chart, such as oci://..., https://... or a path.
	Source string
	// Chart is nil if the chart is an upstream chart that hasn't been fetched.
	Chart *chart.Chart
	// Values override the chart's defaults. They consist of the section, of values from the layout, and of global settings. They contain no secrets.
	Values map[string]any
	// Credentials holds the secrets of the section, by dotted path. paictl writes them into the Secret CredentialsName, whose name is in Values.
	Credentials map[string]secret.String
	Claims      []Claim
	// Upstream is the reference to the chart of an upstream service. It is nil for an embedded chart.
	Upstream *ChartRef

	// secretValues are passed to Helm together with Values, because an upstream chart accepts secrets only as values.
	secretValues map[string]any
}

// Placements that aren't roles, and the source of charts that are embedded in paictl.
const (
	PlacementAll   = "all"
	PlacementNone  = "none"
	SourceEmbedded = "embedded"
)

// Claim describes a volume for data that outlives the service.
type Claim struct {
	Name  string `yaml:"name" json:"name"`   // the name of the PersistentVolumeClaim
	Owner int64  `yaml:"owner" json:"owner"` // user and group id of the process that writes there
}

// ChartRef is a reference to an upstream chart.
type ChartRef struct {
	// Chart is oci://..., https://REPOSITORY#NAME, https://....tgz, or a path. A relative path is relative to Dir.
	Chart   string
	Version string
	Digest  string // sha256:<hex> of the chart's archive, "" if it isn't pinned
	// PlainHTTP allows a registry without TLS. It requires Digest.
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
// revision is a random word that changes with the Secret. It isn't a hash of the credentials, because more people can read releases than Secrets,
// and short passwords can be guessed from a hash.
func (s *Service) SetCredentialsRevision(revision string) {
	if len(s.Credentials) > 0 {
		s.Values[keyCredentialsRevision] = revision
	}
}

// ReleaseValues returns Values together with the secret values of an upstream service. The result is passed to Helm and never shown.
func (s *Service) ReleaseValues() map[string]any { return merge(s.Values, s.secretValues) }

// ShownValues returns the same values as ReleaseValues, with masked secrets.
func (s *Service) ShownValues() map[string]any { return merge(s.Values, masked(s.secretValues)) }

// Catalogue holds the services of one configuration.
type Catalogue struct {
	cfg      *config.Cluster
	services map[string]*Service
	volumes  []LocalVolume
	// verifiesKubelets means that paictl decided that Prometheus verifies kubelets, because the section doesn't set it.
	verifiesKubelets bool
	// otherRelease lists the fields with image tags of another release. laterRelease means that at least one of these releases is later than this
	// paictl.
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

// Get returns the service with a name, or nil.
func (c *Catalogue) Get(name string) *Service { return c.services[name] }

func (c *Catalogue) names() []string { return sorted(maps.Keys(c.services)) }

// at returns the path of a field in the section of a service.
func at(service string, steps ...any) strictyaml.Path {
	return append(strictyaml.Path{service}, steps...)
}
