// Package facts publishes facts about the releases of the platform's services, without secrets, so that programs that may not read Helm's releases,
// which are Secrets, can determine the state of services.
// In: facts of a run; the objects of the cluster. Out: a ConfigMap, and the state of each service.
package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

// Service is the facts about one service.
type Service struct {
	Name      string `json:"-"` // the key
	Namespace string `json:"namespace"`
	// Wanted means that the configuration has the service, and enables it.
	Wanted bool `json:"wanted,omitempty"`
	// Absent is the state of a service without a release.
	Absent string `json:"absent,omitempty"`
	// Release is nil if the service has no release.
	Release *Release `json:"release,omitempty"`
}

// Release is a release of Helm without its values and its manifest.
type Release struct {
	Status   string    `json:"status"` // Helm's word
	Revision int       `json:"revision"`
	Chart    string    `json:"chart"` // name and version
	Updated  time.Time `json:"updated"`
	// Paictl is the version that wrote the revision, or "".
	Paictl string `json:"paictl,omitempty"`
	// Configuration compares the release with the configuration that the cluster stores; "" if the service isn't wanted.
	Configuration string `json:"configuration,omitempty"`
	// Targets are the objects that must work, and ConfigMaps the names of the ConfigMaps in the namespace of the
	// release.
	Targets    []ready.Target `json:"targets,omitempty"`
	ConfigMaps []string       `json:"configMaps,omitempty"`
}

// Helm's states of releases.
const (
	StatusDeployed     = "deployed"
	StatusUninstalling = "uninstalling"
)

// valid reports whether facts can be used: everyone who may change the ConfigMap can write any content.
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

// elsewhere returns the namespace of an object that pai-server may not read, or "".
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
