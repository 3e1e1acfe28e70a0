// Package fetch downloads a bundle from the projects' own releases and registries.
// In: a table of URLs, the published checksums, a lock file, and optionally a mirror. Out: a folder and a manifest in the same format as those of a
// build. The package rejects files with an unknown or a changed checksum.
package fetch

import (
	"slices"
	"strings"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/cluster/bundle/chart"
	"github.com/openpai/paictl/templates"
)

// Catalogue lists the files and images to download, and the charts to pack.
type Catalogue struct {
	Kubernetes string // v1.36.3
	Arch       string // amd64
	Files      []File
	Images     []Image
	Charts     []chart.Chart
}

// File is a download: one program, or a tar.gz archive with several programs.
type File struct {
	URL string
	// Sums is the URL of the file's checksum. The content is a single SHA-256, or lines "sum  name".
	Sums    string
	Outputs []Output
}

// Image is an image in a registry. If Output.Member is set, the artifact is a single program from the image.
type Image struct {
	Ref string
	// Digest is the required digest of the image; "" if only the lock file determines the digest.
	Digest string
	// Own means that paictl's project publishes the image. The project publishes images only for releases.
	Own    bool
	Output Output
}

// Output is one artifact in a download.
type Output struct {
	// Member is the artifact's path in the archive or image; "" means the download itself.
	Member  string
	Name    string
	Version string
	Kind    string
	Roles   []string
}

// Architectures returns the architectures for which the upstream projects publish files.
func Architectures() []string { return []string{"amd64", "arm64"} }

// Upstream returns the catalogue with the versions that paictl pins for its builds.
func Upstream(arch string) (Catalogue, error) {
	v, err := build.Versions()
	if err != nil {
		return Catalogue{}, err
	}
	c := Catalogue{Kubernetes: v["kubernetes"], Arch: arch}
	c.Files = append(kubernetesFiles(v["kubernetes"], arch), releaseFiles(v, arch)...)
	if c.Charts, err = chart.List(templates.Charts()); err != nil {
		return Catalogue{}, err
	}
	services := serviceImages(c.Charts)
	c.Images = append(images(v, services), services...)
	return c, nil
}

// serviceImages returns the images in the values of the services' charts, under their upstream names. It skips images that only a build can make.
func serviceImages(charts []chart.Chart) []Image {
	var out []Image
	for _, c := range charts {
		for _, img := range c.Images {
			if slices.ContainsFunc(out, func(o Image) bool { return o.Ref == img.Ref() }) {
				continue
			}
			out = append(out, Image{Ref: img.Ref(), Digest: img.Digest, Output: Output{
				Name: img.Name(), Version: img.Tag, Kind: bundle.KindImage, Roles: c.Roles,
			}})
		}
	}
	return out
}

func kubernetesFiles(version, arch string) []File {
	var out []File
	add := func(kind string, names ...string) {
		for _, n := range names {
			u := "https://dl.k8s.io/release/" + version + "/bin/linux/" + arch + "/" + n
			out = append(out, File{URL: u, Sums: u + ".sha256", Outputs: []Output{{Name: n, Version: version, Kind: kind}}})
		}
	}
	add(bundle.KindBinary, "kubeadm", "kubectl", "kubelet")
	add(bundle.KindTool, "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	return out
}

func releaseFiles(v map[string]string, arch string) []File {
	release := func(project, version string) string {
		return "https://github.com/" + project + "/releases/download/" + version + "/"
	}
	var (
		ctd  = release("containerd/containerd", v["containerd"]) + "containerd-" + number(v["containerd"]) + "-linux-" + arch + ".tar.gz"
		runc = release("opencontainers/runc", v["runc"])
		cri  = release("kubernetes-sigs/cri-tools", v["cri-tools"]) + "crictl-" + v["cri-tools"] + "-linux-" + arch + ".tar.gz"
		cni  = release("containernetworking/plugins", v["cni-plugins"]) + "cni-plugins-linux-" + arch + "-" + v["cni-plugins"] + ".tgz"
		etcd = "etcd-" + v["etcd"] + "-linux-" + arch
	)
	plugins := File{URL: cni, Sums: cni + ".sha256"}
	for _, m := range build.Default().Modules {
		for _, p := range m.Programs {
			if p.Kind == bundle.KindCNIPlugin {
				plugins.Outputs = append(plugins.Outputs, Output{Member: p.Name, Name: p.Name, Version: v["cni-plugins"], Kind: p.Kind})
			}
		}
	}
	return []File{
		{URL: ctd, Sums: ctd + ".sha256sum", Outputs: []Output{
			{Member: "bin/containerd", Name: "containerd", Version: v["containerd"], Kind: bundle.KindBinary},
			{Member: "bin/containerd-shim-runc-v2", Name: "containerd-shim-runc-v2", Version: v["containerd"], Kind: bundle.KindBinary},
			{Member: "bin/ctr", Name: "ctr", Version: v["containerd"], Kind: bundle.KindBinary},
		}},
		{URL: runc + "runc." + arch, Sums: runc + "runc.sha256sum", Outputs: []Output{
			{Name: "runc", Version: v["runc"], Kind: bundle.KindBinary},
		}},
		{URL: cri, Sums: cri + ".sha256", Outputs: []Output{{Member: "crictl", Name: "crictl", Version: v["cri-tools"], Kind: bundle.KindBinary}}},
		plugins,
		{
			URL: release("etcd-io/etcd", v["etcd"]) + etcd + ".tar.gz", Sums: release("etcd-io/etcd", v["etcd"]) + "SHA256SUMS",
			Outputs: []Output{
				{Member: etcd + "/etcd", Name: "etcd", Version: v["etcd"], Kind: bundle.KindTool},
				{Member: etcd + "/etcdutl", Name: "etcdutl", Version: v["etcd"], Kind: bundle.KindTool},
			},
		},
	}
}

// images returns the images that a build would make, under the same names. It skips images that serviceImages already returns. It also returns the
// images of Prometheus and KWOK, from which promtool and KWOK's program are extracted. KWOK publishes no checksums of its programs, but an image
// has a digest.
func images(v map[string]string, services []Image) []Image {
	out := []Image{{
		Ref:    "registry.k8s.io/kwok/kwok:" + v["kwok"],
		Output: Output{Member: "usr/local/bin/kwok", Name: "kwok", Version: v["kwok"], Kind: bundle.KindTool},
	}}
	for _, s := range services {
		if s.Output.Name == "prometheus" {
			out = append(out, Image{Ref: s.Ref, Output: Output{Member: "bin/promtool", Name: "promtool", Version: s.Output.Version, Kind: bundle.KindTool}})
		}
	}
	for _, img := range build.OwnImages() {
		if i := slices.IndexFunc(paictl.InCluster(), func(p paictl.Program) bool { return p.Name == img.Name }); i >= 0 && paictl.InCluster()[i].Machine {
			out = append(out, Image{Ref: img.Reference(v[img.Name]), Own: true, Output: Output{
				Member: img.Name, Name: img.Name, Version: v[img.Name], Kind: bundle.KindBinary,
			}})
		}
	}
	for _, img := range build.Default().Images {
		version := v[img.Name]
		if img.Package != "" {
			version = img.Ref[strings.LastIndex(img.Ref, ":")+1:] // only builds know the version of a package
		}
		if slices.ContainsFunc(services, func(s Image) bool { return s.Output.Name == img.Name }) {
			continue
		}
		own := strings.HasPrefix(img.Ref, bundle.OwnRegistry+"/")
		out = append(out, Image{Ref: img.Reference(version), Own: own, Output: Output{
			Name: img.Name, Version: version, Kind: bundle.KindImage, Roles: img.Roles,
		}})
	}
	return out
}

func number(version string) string { return strings.TrimPrefix(version, "v") }
