// Package bundle manages the artifacts of a cluster: programs, CNI plugins and OCI images, with their checksums in one manifest.
// In: source modules or upstream URLs. Out: a folder that can be listed, verified and opened, and that provides the files for nodes.
package bundle

import (
	"slices"
	"strings"
)

// APIVersion and ManifestKind are the values of the fields apiVersion and kind in a manifest.
const (
	APIVersion   = "paictl.openpai.org/v1"
	ManifestKind = "Bundle"
)

// The origins of a bundle. The command "paictl bundle ORIGIN" makes a bundle.
const (
	OriginBuild = "build"
	OriginFetch = "fetch"
)

// OwnRegistry is the registry with the images of paictl's own programs, unless a cluster's docker-registry overrides it.
const OwnRegistry = "docker.io/openpai"

// ManifestFile is the name of the manifest in a bundle's folder.
const ManifestFile = "manifest.yaml"

// The kinds of artifacts.
const (
	KindBinary    = "binary"     // an executable for the node's bin folder
	KindCNIPlugin = "cni-plugin" // an executable for /opt/cni/bin
	KindImage     = "image"      // an OCI image as a tar that "ctr images import" reads
	KindTool      = "tool"       // an executable that runs on the operator's machine only (api-only sandbox, promtool)
	KindChart     = "chart"      // a Helm chart as an archive, for users who install it without paictl
	// KindDriver is a package of NVIDIA's driver or of its dependencies, a .deb for one distribution. The operator adds such packages. "bundle build"
	// and "bundle fetch" don't change them.
	KindDriver = "driver-package"
)

// Kinds returns all kinds of artifacts, in the order of a manifest.
func Kinds() []string {
	return []string{KindBinary, KindCNIPlugin, KindImage, KindTool, KindChart, KindDriver}
}

// Manifest describes a bundle.
type Manifest struct {
	APIVersion string `yaml:"apiVersion" json:"apiVersion"` // paictl.openpai.org/v1
	Kind       string `yaml:"kind" json:"kind"`             // Bundle
	// Kubernetes is the release of kubelet, kubeadm and the control plane, such as v1.36.3.
	Kubernetes string `yaml:"kubernetes" json:"kubernetes"`
	Arch       string `yaml:"arch" json:"arch"` // amd64
	// Origin is OriginBuild or OriginFetch. Remedies contain the command of the same name.
	Origin    string     `yaml:"origin" json:"origin"`
	Artifacts []Artifact `yaml:"artifacts" json:"artifacts"`
}

// Artifact is one file of a bundle.
type Artifact struct {
	Name    string `yaml:"name" json:"name"` // kubelet, containerd, coredns, bridge …
	Version string `yaml:"version" json:"version"`
	Kind    string `yaml:"kind" json:"kind"`
	// Path is the file's path relative to the bundle's folder, with slashes.
	Path string `yaml:"path" json:"path"`
	// Source is the file's origin: module@version, or the URL of its download.
	Source string `yaml:"source" json:"source"`
	SHA256 string `yaml:"sha256" json:"sha256"` // hex, of the file
	Size   int64  `yaml:"size" json:"size"`     // bytes
	// Image is the image's reference on nodes, such as
	// registry.k8s.io/pause:3.10.1; only for KindImage.
	Image string `yaml:"image,omitempty" json:"image,omitempty"`
	// Digest is the image's manifest digest, "sha256:…"; only for KindImage.
	Digest string `yaml:"digest,omitempty" json:"digest,omitempty"`
	// Packages lists the distribution's packages in an image, as name=version.
	Packages []string `yaml:"packages,omitempty" json:"packages,omitempty"`
	// Roles lists the machine roles that need the artifact: "master", "worker"; empty means all.
	Roles []string `yaml:"roles,omitempty" json:"roles,omitempty"`
	// System is the distribution for which a package was built, such as debian12; only for KindDriver.
	System string `yaml:"system,omitempty" json:"system,omitempty"`
}

// id identifies an artifact in a bundle. For driver packages it contains the distribution and the version, because a bundle may contain several
// versions of a package for several distributions.
func (a Artifact) id() string {
	if a.Kind == KindDriver {
		return a.Kind + "/" + strings.TrimPrefix(a.Path, driverDir)
	}
	return a.Kind + "/" + a.Name
}

// NeededBy reports whether a machine needs the artifact. Every machine needs an artifact without roles. Otherwise the roles select machines of the
// control plane ("master") and machines that run jobs ("worker"). A machine may have both roles.
func (a Artifact) NeededBy(controlPlane, worker bool) bool {
	return len(a.Roles) == 0 || controlPlane && slices.Contains(a.Roles, "master") || worker && slices.Contains(a.Roles, "worker")
}

// PathOf returns the path of an artifact in a bundle. For a chart, name is the name of the chart's file, which includes the version:
// charts/prometheus-0.1.0.tgz.
func PathOf(kind, name string) string {
	switch kind {
	case KindCNIPlugin:
		return "cni/" + name
	case KindTool:
		return "tools/" + name
	case KindImage:
		return "images/" + name + ".tar"
	case KindChart:
		return "charts/" + name
	default:
		return "bin/" + name
	}
}

const driverDir = "driver/"

// DriverPath returns the path of a driver package in a bundle. The folder is named after the distribution. The file has apt's name, in which the
// colon of a version is escaped.
func DriverPath(system, name, version, arch string) string {
	return driverDir + system + "/" + name + "_" + strings.ReplaceAll(version, ":", "%3a") + "_" + arch + ".deb"
}
