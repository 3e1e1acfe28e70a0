// Package catalogue knows which services there are and what each is given.
// In: the embedded charts, upstream charts that the configuration names, and a cluster's
// configuration. Out: services with complete values, the order in which they start, and
// findings about their sections of services-configuration.yaml.
package catalogue

import (
	"helm.sh/helm/v3/pkg/chart"

	"github.com/openpai/paictl/pkg/secret"
)

// Annotations of a Chart.yaml that paictl reads.
const (
	// AnnotationRequires lists services that must be ready before, with commas.
	AnnotationRequires = "paictl.openpai.org/requires"
	// AnnotationPlacement lists the roles of the layout on whose machines the pods run, with
	// commas; "all" means every machine, "none" that there are no pods.
	AnnotationPlacement = "paictl.openpai.org/placement"
	// AnnotationClaims is a YAML list of Claim: what the service keeps on disk.
	AnnotationClaims = "paictl.openpai.org/claims"
)

// Service is one entry of the catalogue.
type Service struct {
	Name        string
	Description string
	Namespace   string
	// Requires are the services that must be ready before this one starts.
	Requires []string
	// Placement are roles of the layout, or PlacementAll or PlacementNone alone.
	Placement []string
	Enabled   bool
	// Source is SourceEmbedded, or the reference of the chart: oci://..., https://..., a path.
	Source string
	Chart  *chart.Chart
	// Values are what Helm gets over the chart's own defaults: section, layout and global
	// settings. They hold no secret.
	Values map[string]any
	// Credentials are the section's secrets by dotted path. paictl keeps them in the Secret
	// CredentialsName, and Values name it.
	Credentials map[string]secret.String
	Claims      []Claim
}

// Placements that are no roles, and the source of charts that are part of paictl.
const (
	PlacementAll   = "all"
	PlacementNone  = "none"
	SourceEmbedded = "embedded"
)

// Claim is a volume in which a service keeps data beyond its own life.
type Claim struct {
	Name  string `yaml:"name" json:"name"`   // of the PersistentVolumeClaim
	Owner int64  `yaml:"owner" json:"owner"` // user and group id of what writes there
}

// CredentialsName is the Secret with a service's credentials.
func (s *Service) CredentialsName() string { return s.Name + "-credentials" }
