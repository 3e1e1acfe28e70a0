// Package bundle has the artifacts of a cluster: programs, CNI plugins and OCI images, each with its checksum in one manifest.
// In: source modules or upstream URLs. Out: a folder that can be listed, verified and opened, and that provides the files for nodes.
package bundle

import (
	"slices"
	"strings"
)

// APIVersion and ManifestKind are the values of a manifest's header.
const (
	APIVersion   = "paictl.openpai.org/v1"
	ManifestKind = "Bundle"
)

// Origins of a bundle: the command that made it is "paictl bundle ORIGIN".
const (
	OriginBuild = "build"
	OriginFetch = "fetch"
)

// OwnRegistry is the registry of the images of paictl's own programs, unless a cluster's
// docker-registry names another.
const OwnRegistry = "docker.io/openpai"

// ManifestFile is the name of the manifest in a bundle's folder.
const ManifestFile = "manifest.yaml"

// Kinds of artifacts.
const (
	KindBinary    = "binary"     // an executable for the node's bin folder
	KindCNIPlugin = "cni-plugin" // an executable for /opt/cni/bin
	KindImage     = "image"      // an OCI image as a tar that "ctr images import" reads
	KindTool      = "tool"       // an executable that runs on the operator's machine only (api-only sandbox, promtool)
	KindChart     = "chart"      // a Helm chart as an archive, for users who install it without paictl
	// KindDriver is a package of NVIDIA's driver or one of its dependencies, a .deb for the machines of one distribution. The
	// operator adds it; build and fetch don't change it.
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
	// Kubernetes is the release of kubelet, kubeadm and the control plane, "v1.36.3".
	Kubernetes string `yaml:"kubernetes" json:"kubernetes"`
	Arch       string `yaml:"arch" json:"arch"` // amd64
	// Origin is OriginBuild or OriginFetch, so that a remedy can name the command.
	Origin    string     `yaml:"origin" json:"origin"`
	Artifacts []Artifact `yaml:"artifacts" json:"artifacts"`
}

// Artifact is one file of a bundle.
type Artifact struct {
	Name    string `yaml:"name" json:"name"` // kubelet, containerd, coredns, bridge …
	Version string `yaml:"version" json:"version"`
	Kind    string `yaml:"kind" json:"kind"`
	// Path is relative to the bundle's folder, with slashes.
	Path string `yaml:"path" json:"path"`
	// Source is its origin: module@version, or the URL that it was downloaded from.
	Source string `yaml:"source" json:"source"`
	SHA256 string `yaml:"sha256" json:"sha256"` // hex, of the file
	Size   int64  `yaml:"size" json:"size"`     // bytes
	// Image is the image's reference on nodes, such as
	// registry.k8s.io/pause:3.10.1; only for KindImage.
	Image string `yaml:"image,omitempty" json:"image,omitempty"`
	// Digest is the image's manifest digest, "sha256:…"; only for KindImage.
	Digest string `yaml:"digest,omitempty" json:"digest,omitempty"`
	// Packages are the distribution's packages in an image, as name=version.
	Packages []string `yaml:"packages,omitempty" json:"packages,omitempty"`
	// Roles are the machine roles that need it: "master", "worker"; empty means all.
	Roles []string `yaml:"roles,omitempty" json:"roles,omitempty"`
	// System is the distribution that a package is for, such as debian12; only for KindDriver.
	System string `yaml:"system,omitempty" json:"system,omitempty"`
}

// id identifies an artifact. A bundle may have packages with the same name in several versions, for several
// distributions.
func (a Artifact) id() string {
	if a.Kind == KindDriver {
		return a.Kind + "/" + strings.TrimPrefix(a.Path, driverDir)
	}
	return a.Kind + "/" + a.Name
}

// NeededBy reports whether a machine needs the artifact. If it has no roles, every machine needs it; otherwise machines of the control plane
// ("master") or machines that run jobs ("worker") need it. A machine may be both.
func (a Artifact) NeededBy(controlPlane, worker bool) bool {
	return len(a.Roles) == 0 || controlPlane && slices.Contains(a.Roles, "master") || worker && slices.Contains(a.Roles, "worker")
}

// PathOf returns the path of an artifact in a bundle. For a chart, name is the name of its file,
// which includes the version: charts/prometheus-0.1.0.tgz.
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

// DriverPath returns the path of a package in a bundle: in a folder for its distribution, under apt's name for the file, which escapes the colon of
// a version.
func DriverPath(system, name, version, arch string) string {
	return driverDir + system + "/" + name + "_" + strings.ReplaceAll(version, ":", "%3a") + "_" + arch + ".deb"
}
