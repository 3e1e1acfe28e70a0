package sandbox

import (
	"maps"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/cluster/bundle"
)

type settings = map[string]any

const whyOff = "The bundle has no image of it, and none can be built from modules of source. For it take a\nbundle of \"paictl bundle fetch\", or name an image that a registry has; then enable it."

// servicesOf returns a section with settings for each service whose image is in the bundle (see bundle.ServiceSections). The settings suit a sandbox.
func servicesOf(images []bundle.Artifact) (*yaml.Node, error) {
	sections := bundle.ServiceSections(images)
	if sections == nil {
		return nil, nil
	}
	for service, fit := range fitting() {
		if section := sections[service]; section != nil {
			maps.Copy(section, fit)
		}
	}
	off := map[string]bool{}
	for _, service := range bundle.FetchedServices() {
		off[service] = sections[service]["enabled"] == false
	}
	node := &yaml.Node{}
	if err := node.Encode(sections); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; off[key.Value] {
			key.HeadComment = whyOff
		}
	}
	return node, nil
}

// fitting returns settings for hosts that share the two processors of a machine. It disables the alert about the clock, because hosts share the
// machine's clock and can't set it.
func fitting() map[string]settings {
	requests := func(cpu, memory string) settings {
		return settings{"requests": settings{"cpu": cpu, "memory": memory}}
	}
	return map[string]settings{
		"prometheus": {
			"resources": requests("50m", "128Mi"), "persistence": settings{"size": "1Gi"},
			"retention": settings{"time": "2d", "size": "800MB"},
			"alerts":    settings{"disabled": []string{"NodeClockNotSynchronised"}},
		},
		"alert-manager":  {"resources": requests("10m", "32Mi"), "persistence": settings{"size": "64Mi"}},
		"node-exporter":  {"resources": requests("10m", "24Mi")},
		"watchdog":       {"resources": requests("10m", "24Mi")},
		"agent":          {"resources": requests("10m", "24Mi")},
		"scheduler":      {"resources": requests("20m", "80Mi")},
		"log-manager":    {"resources": requests("10m", "32Mi"), "retention": settings{"machineGiB": 2}},
		"job-controller": {"resources": requests("10m", "48Mi"), "persistence": settings{"size": "1Gi"}},
	}
}

// bundledServices returns the sections for the images in the sandbox's bundle. It returns nil without a bundle, or if the bundle can't be opened.
func (s *Sandbox) bundledServices() (*yaml.Node, error) {
	if s.state.Bundle == "" {
		return nil, nil
	}
	b, err := bundle.Open(s.state.Bundle)
	if err != nil {
		s.progress("quick-start.yaml names no images of services: " + err.Error())
		return nil, nil //nolint:nilerr // it was reported, and a sandbox works without
	}
	return servicesOf(b.List(bundle.KindImage))
}
