package bundle

import (
	"strings"

	"github.com/openpai/paictl"
)

// imagedServices maps the name of an image in a bundle to the service that runs the image.
func imagedServices() map[string]string {
	out := map[string]string{
		"prometheus": "prometheus", "alertmanager": "alert-manager", "node-exporter": "node-exporter",
		"kube-state-metrics": "kube-state-metrics", "grafana": "grafana",
	}
	for _, p := range paictl.InCluster() {
		if !p.Machine {
			out[p.Name] = p.Service
		}
	}
	return out
}

// runtimeImage is the image in the pods of jobs. In the section of the job controller, the key runtimeKey contains the image's reference.
const runtimeImage, runtimeService, runtimeKey = "pai-runtime", "job-controller", "runtimeImage"

// FetchedServices returns the services whose images "paictl bundle build" can't build.
func FetchedServices() []string { return []string{"grafana", "kube-state-metrics"} }

// ServiceSections returns sections for services-configuration.yaml, with a bundle's images for the services that run them. It disables services whose
// image is missing and can't be built. It returns nil if a bundle contains no image of any service, because the charts' default images work as well.
func ServiceSections(images []Artifact) map[string]map[string]any {
	sections := map[string]map[string]any{}
	for _, a := range images {
		service := imagedServices()[a.Name]
		key, image := "image", map[string]any{"pullPolicy": "IfNotPresent"}
		if a.Name == runtimeImage {
			service, key, image = runtimeService, runtimeKey, map[string]any{}
		}
		repository, tag, ok := cutReference(a.Image)
		if service == "" || !ok {
			continue
		}
		image["repository"], image["tag"] = repository, tag
		if sections[service] == nil {
			sections[service] = map[string]any{}
		}
		sections[service][key] = image
	}
	if len(sections) == 0 {
		return nil
	}
	for _, service := range FetchedServices() {
		if sections[service] == nil {
			sections[service] = map[string]any{"enabled": false}
		}
	}
	return sections
}

func cutReference(ref string) (repository, tag string, ok bool) {
	ref, _, _ = strings.Cut(ref, "@")
	i := strings.LastIndex(ref, ":")
	if i <= 0 || i < strings.LastIndex(ref, "/") {
		return "", "", false
	}
	return ref[:i], ref[i+1:], true
}
