package config

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// withoutEmpty removes settings without a value. In an existing cluster, these settings are unknown or have no effect.
func withoutEmpty(k Kubernetes) (any, error) {
	root, err := strictyaml.Node(k)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if section := root.Content[i+1]; section.Kind == yaml.MappingNode {
			dropEmpty(section)
		}
	}
	return root, nil
}

func dropEmpty(section *yaml.Node) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(section.Content); i += 2 {
		v := section.Content[i+1]
		if v.Kind == yaml.ScalarNode && !slices.Contains([]string{"", "0"}, v.Value) || len(v.Content) > 0 {
			kept = append(kept, section.Content[i], v)
		}
	}
	section.Content = kept
}

func existingHead(name string) string {
	const written = "Written by \"paictl config generate --from-kubeconfig\"; you can edit it."
	switch name {
	case LayoutFile:
		return "The machines of a Kubernetes cluster that paictl did not install: its nodes. \n" + written +
			" The names are the names of the\nnodes; paictl does not log in to the machines."
	case KubernetesFile:
		return "A Kubernetes cluster that paictl did not install. paictl runs its services there, and installs,\nchanges and removes no part of it. " + written
	case RolesFile:
		return "Definitions of the roles in layout.yaml.\n" + written
	}
	return fileHead(name)
}

// existingDocs returns the descriptions of fields for an existing cluster. Some fields have another meaning in a cluster that paictl has installed.
func existingDocs(name string, docs map[string]string) map[string]string {
	docs = maps.Clone(docs)
	switch name {
	case LayoutFile:
		docs["ssh"] = "Not used."
		docs["machine-list"] = "The machines. Those with the role master run the platform's own services."
	case KubernetesFile:
		docs["kubernetes"] = "Known facts about the cluster."
		docs["kubernetes.managed"] = "false: not installed by paictl. Cluster and node commands refuse to work on the machines."
		docs["kubernetes.version"] = "Release of Kubernetes when this file was made."
		docs["kubernetes.cluster-name"] = "Name of the cluster."
		docs["kubernetes.pod-cidr"] = "Addresses of pods."
		docs["kubernetes.service-cluster-ip-range"] = "Addresses of services."
		docs["kubernetes.load-balance-ip"] = "Address of the Kubernetes API."
	}
	return docs
}
