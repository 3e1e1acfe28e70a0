// Package store keeps a cluster's configuration in the cluster itself.
// In: the four files. Out: ConfigMap pai-configuration, with every secret replaced by a
// reference; Secret pai-credentials, with the values of the references; their last revisions.
//
// The ConfigMap is authoritative: a push takes effect when it is written, and it is written last.
// It names the entry of the Secret that belongs to it, and entries are never changed, so that a
// reader never mixes two revisions and an interrupted push changes nothing.
package store

import (
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// Names of the objects in kube.SystemNamespace. Earlier revisions are ConfigMaps
// pai-configuration-r1, -r2 and so on.
const (
	ConfigMapName = "pai-configuration"
	SecretName    = "pai-credentials"
)

// Keep is the maximum number of revisions, including the current one.
const Keep = 10

// Store is the configuration in one cluster.
type Store struct {
	// SecretPaths returns further secret paths in services-configuration.yaml, in addition to fields of
	// type secret.String and values that look like a secret.
	SecretPaths func(*config.Cluster) []strictyaml.Path
	// Checks are applied to pushed configurations, in addition to config.Validate's rules.
	Checks []config.Check
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	client kubernetes.Interface
}

// New returns the store of a cluster. It doesn't send a request yet.
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

// Revision describes one state of the configuration.
type Revision struct {
	Number    int       `json:"revision"`
	ClusterID string    `json:"clusterId"`
	Time      time.Time `json:"time"`
	By        string    `json:"by"` // user@host
	Message   string    `json:"message,omitempty"`
	// Files are the files that differ from the previous revision.
	Files []string `json:"files"`
	// Source is where the files came from, if that wasn't a folder of the operator.
	Source  string `json:"source,omitempty"`
	Version string `json:"paictl"`
	// Credentials is the name of the entry in the Secret, or "" if the files contain no secret.
	Credentials string `json:"-"`
	// UID distinguishes this cluster's configuration from the configuration of every other cluster.
	UID string `json:"-"`
}

// ErrNone is returned if the cluster has no configuration.
var ErrNone = hint.Wrap(errors.New("the cluster has no configuration"), "push one with: paictl config push -p DIR")

// ErrChanged is returned if another user pushed while this push ran. Nothing was written.
var ErrChanged = errors.New("the cluster's configuration was changed while this push ran")
