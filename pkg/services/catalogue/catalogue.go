// Package catalogue defines the services and the settings of each.
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

// Annotations of a Chart.yaml that paictl reads.
const (
	// AnnotationRequires lists services that must be ready before this one starts, separated by commas.
	AnnotationRequires = "paictl.openpai.org/requires"
	// AnnotationPlacement lists the roles of the machines that run the pods, separated by commas; "all" means every machine, "none" means that the
	// service has no pods.
	AnnotationPlacement = "paictl.openpai.org/placement"
	// AnnotationClaims is a YAML list of Claim: the volumes for the service's data.
	AnnotationClaims = "paictl.openpai.org/claims"
	// AnnotationEnabled is "false" on a service that is off by default.
	AnnotationEnabled = "paictl.openpai.org/enabled"
	// AnnotationHostPorts lists values that are ports on the machines, of pods with host
	// networking: dotted paths, separated by commas.
	AnnotationHostPorts = "paictl.openpai.org/host-ports"
)

// Service is one entry of the catalogue.
type Service struct {
	Name        string
	Description string
	Namespace   string
	// Requires are the services that must be ready before this one starts.
	Requires []string
	// Placement are roles of the layout, or only PlacementAll or PlacementNone.
	Placement []string
	Enabled   bool
	// Source is SourceEmbedded, or the reference of the chart: oci://..., https://..., a path.
	Source string
	// Chart is nil if the chart is upstream's and hasn't been fetched.
	Chart *chart.Chart
	// Values are passed to Helm over the chart's own defaults: section, layout and global settings. They contain no secrets.
	Values map[string]any
	// Credentials are the section's secrets by dotted path. paictl writes them into the Secret
	// CredentialsName, which Values name.
	Credentials map[string]secret.String
	Claims      []Claim
	// Upstream is the reference to the chart of an upstream service; nil for an embedded chart.
	Upstream *ChartRef

	// secretValues are passed to Helm together with Values: an upstream chart accepts secrets only as values.
	secretValues map[string]any
}

// Placements that aren't roles, and the source of charts that are part of paictl.
const (
	PlacementAll   = "all"
	PlacementNone  = "none"
	SourceEmbedded = "embedded"
)

// Claim is a volume for data that outlives the service.
type Claim struct {
	Name  string `yaml:"name" json:"name"`   // the name of the PersistentVolumeClaim
	Owner int64  `yaml:"owner" json:"owner"` // user and group id of the process that writes there
}

// ChartRef is a reference to an upstream chart.
type ChartRef struct {
	// Chart is oci://..., https://REPOSITORY#NAME, https://....tgz, or a path, which is relative to
	// Dir.
	Chart   string
	Version string
	Digest  string // sha256:<hex> of the chart's archive, "" if it isn't pinned
	// PlainHTTP allows a registry without TLS; only with Digest.
	PlainHTTP bool
	Dir       string // the folder of the configuration, "" if it came from a cluster
}

// Fetcher fetches upstream charts.
type Fetcher interface {
	Fetch(ctx context.Context, ref ChartRef) (*chart.Chart, error)
}

// CredentialsName returns the name of the Secret with a service's credentials.
func (s *Service) CredentialsName() string { return s.Name + "-credentials" }

// SetCredentialsRevision passes the current revision of the credentials to the chart, so that pods are replaced when they change. The
// revision is a random word that changes with the Secret. It isn't a hash of the credentials, because more people can read releases than
// Secrets, and short passwords can be guessed from a hash.
func (s *Service) SetCredentialsRevision(revision string) {
	if len(s.Credentials) > 0 {
		s.Values[keyCredentialsRevision] = revision
	}
}

// ReleaseValues returns Values with the secret values of an upstream service. They are passed to Helm and never shown.
func (s *Service) ReleaseValues() map[string]any { return merge(s.Values, s.secretValues) }

// ShownValues returns ReleaseValues with every secret masked.
func (s *Service) ShownValues() map[string]any { return merge(s.Values, masked(s.secretValues)) }

// Catalogue holds the services of one configuration.
type Catalogue struct {
	cfg      *config.Cluster
	services map[string]*Service
	volumes  []LocalVolume
	// verifiesKubelets means that paictl made this decision, because the section doesn't.
	verifiesKubelets bool
	// otherRelease are the fields with image tags of another release; laterRelease means that one of these is later than
	// this paictl.
	otherRelease []strictyaml.Path
	laterRelease bool
}

// Services returns all services by name, including disabled services.
func (c *Catalogue) Services() []*Service {
	out := make([]*Service, 0, len(c.services))
	for _, name := range c.names() {
		out = append(out, c.services[name])
	}
	return out
}

// Get returns a service, or nil if no service has that name.
func (c *Catalogue) Get(name string) *Service { return c.services[name] }

func (c *Catalogue) names() []string { return sorted(maps.Keys(c.services)) }

// at returns the path of a field in a service's section.
func at(service string, steps ...any) strictyaml.Path {
	return append(strictyaml.Path{service}, steps...)
}
