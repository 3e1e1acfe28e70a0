// Package facts publishes facts about the releases of the platform's services. Helm stores releases in Secrets. With these facts, programs without
// access to Secrets can determine the state of services. In: facts of a run; the objects of the cluster. Out: a ConfigMap without secrets, and the
// state of each service.
package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

// Service holds the facts about a service.
type Service struct {
	Name      string `json:"-"` // the key
	Namespace string `json:"namespace"`
	// Wanted means that the configuration enables the service.
	Wanted bool `json:"wanted,omitempty"`
	// Absent is the state of the service if it has no release.
	Absent string `json:"absent,omitempty"`
	// Release is nil if the service has no release.
	Release *Release `json:"release,omitempty"`
}

// Release describes a Helm release without the values and the manifest.
type Release struct {
	Status   string    `json:"status"` // Helm's word
	Revision int       `json:"revision"`
	Chart    string    `json:"chart"` // name and version
	Updated  time.Time `json:"updated"`
	// Paictl is the version of paictl that created the revision, or "".
	Paictl string `json:"paictl,omitempty"`
	// Configuration is the result of comparing the release with the stored configuration. Configuration is "" if Service.Wanted is false.
	Configuration string `json:"configuration,omitempty"`
	// Targets are the objects that must be ready. ConfigMaps are the names of the release's ConfigMaps in its namespace.
	Targets    []ready.Target `json:"targets,omitempty"`
	ConfigMaps []string       `json:"configMaps,omitempty"`
}

// These are Helm's states of a release.
const (
	StatusDeployed     = "deployed"
	StatusUninstalling = "uninstalling"
)

// valid reports whether the facts are well-formed. This check is necessary because every user with write access to the ConfigMap can store any
// content.
func (s *Service) valid() bool {
	if s.Name == "" || s.Namespace == "" {
		return false
	}
	r := s.Release
	if r == nil {
		return slices.Contains([]string{state.StateStopped, state.StateNotInstalled, state.StateDisabled}, s.Absent)
	}
	verdicts := []string{"", state.ConfigurationCurrent, state.ConfigurationChanged, state.ConfigurationChart}
	return r.Revision > 0 && slices.Contains(verdicts, r.Configuration) && !slices.ContainsFunc(r.Targets, func(t ready.Target) bool { return !t.Valid() })
}

// elsewhere returns the namespace of an object that pai-server may not read, or "" if pai-server may read all objects of the service.
func (s *Service) elsewhere() string {
	if s.Release == nil {
		return ""
	}
	if s.Namespace != kube.SystemNamespace {
		return s.Namespace
	}
	for _, t := range s.Release.Targets {
		claim := t.Namespace == kube.JobNamespace && t.Kind == "PersistentVolumeClaim"
		if ns := cmp.Or(t.Namespace, kube.SystemNamespace); ns != kube.SystemNamespace && !claim {
			return ns
		}
	}
	return ""
}
