// Package store stores the configuration of a cluster in the cluster itself.
// In: the four files. Out: ConfigMap pai-configuration, with a reference in place of each secret; Secret pai-credentials, with the values of the
// secrets; earlier revisions of both objects.
//
// The ConfigMap is authoritative. A push writes it last, and takes effect with this write. The ConfigMap contains the name of its entry in the
// Secret, and entries never change. Therefore a reader never mixes two revisions, and an interrupted push has no effect.
package store

import (
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// Names of the objects in kube.SystemNamespace. Earlier revisions are in the ConfigMaps pai-configuration-r1, -r2 and so on.
const (
	ConfigMapName = "pai-configuration"
	SecretName    = "pai-credentials"
)

// Keep is the maximum number of kept revisions, including the current revision.
const Keep = 10

// Store gives access to the configuration that a cluster stores.
type Store struct {
	// SecretPaths returns additional secret paths in services-configuration.yaml. Fields of type secret.String and values that look secret are always
	// secret.
	SecretPaths func(*config.Cluster) []strictyaml.Path
	// Checks are additional rules for pushed configurations.
	Checks []config.Check
	// Now returns the current time. If it is nil, time.Now is used.
	Now func() time.Time

	client kubernetes.Interface
}

// New returns the store in a cluster. It sends no request yet.
func New(client kubernetes.Interface) *Store { return &Store{client: client} }

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Store) secretPaths(c *config.Cluster) []strictyaml.Path {
	if s.SecretPaths == nil {
		return nil
	}
	return s.SecretPaths(c)
}

// Revision describes one revision of the configuration.
type Revision struct {
	Number    int       `json:"revision"`
	ClusterID string    `json:"clusterId"`
	Time      time.Time `json:"time"`
	By        string    `json:"by"` // user@host
	Message   string    `json:"message,omitempty"`
	// Files lists the files that differ from the previous revision.
	Files []string `json:"files"`
	// Source is the origin of the files if they weren't from a folder of the operator.
	Source  string `json:"source,omitempty"`
	Version string `json:"paictl"`
	// Credentials is the name of the entry in the Secret, or "" if the files contain no secrets.
	Credentials string `json:"-"`
	// UID distinguishes the configuration of this cluster from the configurations of all other clusters.
	UID string `json:"-"`
}

// ErrNone means that the cluster has no configuration.
var ErrNone = hint.Wrap(errors.New("the cluster has no configuration"), "push one with: paictl config push -p DIR")

// ErrChanged means that another user pushed at the same time. This push has written no revision.
var ErrChanged = errors.New("the cluster's configuration was changed while this push ran")
