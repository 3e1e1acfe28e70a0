package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

// NetworkManifest returns the path of the manifest in the setting network-plugin. It returns "" if the setting isn't the path of a manifest.
func (c *Cluster) NetworkManifest() string {
	plugin := c.Kubernetes.Kubernetes.NetworkPlugin
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(plugin)) {
		return ""
	}
	return c.resolve(plugin)
}

func (k *checker) checkNetworkPlugin() {
	switch k.c.Kubernetes.Kubernetes.MetadataAddress {
	case "", MetadataClosed, MetadataOpen:
	default:
		k.kube.fail(where("kubernetes", "metadata-address"), "kubernetes/metadata-address",
			fmt.Sprintf("%q is neither closed nor open", k.c.Kubernetes.Kubernetes.MetadataAddress), "write closed, so that pods don't get the machine's credentials from the cloud, or open")
	}
	plugin, p := k.c.Kubernetes.Kubernetes.NetworkPlugin, where("kubernetes", "network-plugin")
	const rule = "kubernetes/network-plugin"
	if plugin == "flannel" || plugin == "none" {
		return
	}
	manifest := k.c.NetworkManifest()
	if manifest == "" {
		k.kube.fail(p, rule, fmt.Sprintf("there is no network plugin %q", plugin), "write flannel; none and install another yourself; or the path of a manifest that ends in .yaml")
		return
	}
	// The configuration that the cluster stores has no folder. Skip the check then, because services don't need the manifest.
	if info, err := os.Stat(k.c.Dir); k.c.Dir == "" || err != nil || !info.IsDir() {
		return
	}
	text, err := os.ReadFile(manifest)
	if err != nil {
		k.kube.fail(p, rule, fmt.Sprintf("there is no file %s", manifest), "put the manifest there; a relative path starts in "+filepath.Clean(k.c.Dir))
		return
	}
	k.kube.failIf(badManifest(text), p, rule, "give the plugin's own manifest, as for: kubectl apply -f "+manifest)
}

// badManifest returns a message if a file contains anything other than Kubernetes objects in YAML documents, or "".
func badManifest(text []byte) string {
	objects := 0
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o struct {
			Kind string `yaml:"kind"`
		}
		err := dec.Decode(&o)
		switch {
		case errors.Is(err, io.EOF) && objects > 0:
			return ""
		case errors.Is(err, io.EOF):
			return "the manifest contains no object"
		case err != nil:
			return "the manifest is not YAML with Kubernetes objects"
		case o.Kind != "":
			objects++
		}
	}
}
