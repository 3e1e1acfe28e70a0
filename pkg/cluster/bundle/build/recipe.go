// Package build builds a bundle from source: Go modules pinned by go.sum, one C file, and Debian packages.
// In: the modules in the repository's bundle/ folder. Out: a bundle folder and progress lines.
//
// The pins are separate Go modules. The versions of Kubernetes and of paictl therefore don't depend on each other, and ordinary tools can update the
// pins. go:embed rejects files of another module, so modules.txtar contains a copy of the go.mod and go.sum files. With this copy, an installed
// paictl can build a bundle without a checkout. A test checks that the copy is equal to bundle/.
package build

import (
	"io/fs"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
	"github.com/openpai/paictl/pkg/diagnose/netcheck"
	"github.com/openpai/paictl/templates"
)

// Recipe describes the contents of a bundle.
type Recipe struct {
	Modules []Module
	Images  []Image
	// Charts contains the folders charts/<service>/. It may be nil.
	Charts fs.FS
}

// Module is a folder in bundle/ with one pinned upstream module. Its programs are built from that module.
type Module struct {
	Name string // the folder: kubernetes
	Path string // the upstream module: k8s.io/kubernetes
	Tags string // build tags, separated by commas
	// Own holds the files of a module that is part of paictl, by path. It is nil for a module that bundle/ pins.
	Own map[string]string
	// Version is the version that the programs report. "" means the pinned version. For a pinned module, only tests of upgrades set Version.
	Version string
	// ModFile is the path of a file in Own that is used instead of go.mod; "" means go.mod.
	ModFile string `json:",omitempty"`
	// CGO means that the machine's C compiler compiles the programs, and that they are linked statically. Dynamic means that the programs are linked
	// with the C library of the image, because they load other libraries.
	CGO     bool
	Dynamic bool `json:",omitempty"`
	// LDFlags is added to the linker flags of every program. {version} is the module's version.
	LDFlags  string
	Programs []Program
}

// Program is one executable of a module.
type Program struct {
	Name    string
	Package string // import path; default is the module's path
	// C is the path of a C source file in the module. It is compiled instead of a Go package. Version is the program's own version.
	C       string
	Version string
	// Kind is the kind of the program's artifact; "" means that only images contain the program.
	Kind  string
	Roles []string
}

// Image is a container image to build.
type Image struct {
	Name string
	// Ref is the image's reference on nodes. {version} is the version of the first program, {number} is the version without its v, and {tag} is the
	// version in the format of a tag.
	Ref string
	// Files lists the programs in the image and their paths. The first program is the image's main program.
	Files      []File
	Entrypoint []string
	// Cmd holds the arguments of Entrypoint that a container replaces with its own.
	Cmd []string `json:",omitempty"`
	// Setuid means that the programs run as their owner, root, also for other users.
	Setuid bool `json:",omitempty"`
	// Entries holds further files, directories and links. They replace files of programs and packages.
	Entries []oci.Entry `json:",omitempty"`
	// User is the number of the user that runs the image's program; "" means root.
	User string `json:",omitempty"`
	// Debian lists packages. The image contains their files and the files of their dependencies.
	Debian []string
	// Package is the Debian package whose version is the image's version. It is set only if the image contains no compiled program.
	Package string `json:",omitempty"`
	// Labels is added to the labels of every image.
	Labels map[string]string `json:",omitempty"`
	Roles  []string
}

// File places a program at a path in an image.
type File struct{ Program, Path string }

// master is the role of machines that run the control plane. worker is the role of machines that run jobs.
const (
	master = "master"
	worker = "worker"
)

// noUser is the number of the user "nobody".
const noUser = "65534"

// netfilterPackages returns the packages with the programs that kube-proxy and flannel call: nft, iptables, conntrack and modprobe. The images of
// kube-proxy and flannel contain the same packages, so that a node stores their layer only once.
func netfilterPackages() []string { return []string{"conntrack", "iptables", "kmod", "nftables"} }

// Default returns the recipe for paictl's bundle. It uses the flags of the upstream release builds, but omits flags that make two builds differ.
func Default() Recipe {
	r := onMachines(Own())
	return Recipe{Modules: append(modules(), r.Modules...), Images: append(images(), r.Images...), Charts: templates.Charts()}
}

// ControlPlane returns a recipe with only etcd and the API server. Tests without nodes use it.
func ControlPlane() Recipe {
	wanted := map[string][]string{"kubernetes": {"kube-apiserver"}, "etcd": {"etcd"}}
	var r Recipe
	for _, m := range modules() {
		programs := wanted[m.Name]
		m.Programs = slices.DeleteFunc(m.Programs, func(p Program) bool { return !slices.Contains(programs, p.Name) })
		if len(m.Programs) > 0 {
			r.Modules = append(r.Modules, m)
		}
	}
	return r
}

func modules() []Module {
	const k8sVersion = "k8s.io/component-base/version"
	return []Module{
		{
			Name: "containerd", Path: "github.com/containerd/containerd/v2",
			Tags:    "urfave_cli_no_docs,static_build",
			LDFlags: "-X github.com/containerd/containerd/v2/version.Version={version}",
			Programs: []Program{
				{Name: "containerd", Package: "github.com/containerd/containerd/v2/cmd/containerd", Kind: bundle.KindBinary},
				{Name: "containerd-shim-runc-v2", Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", Kind: bundle.KindBinary},
				{Name: "ctr", Package: "github.com/containerd/containerd/v2/cmd/ctr", Kind: bundle.KindBinary},
			},
		},
		{
			Name: "cri-tools", Path: "sigs.k8s.io/cri-tools",
			LDFlags:  "-X sigs.k8s.io/cri-tools/pkg/version.Version={number}",
			Programs: []Program{{Name: "crictl", Package: "sigs.k8s.io/cri-tools/cmd/crictl", Kind: bundle.KindBinary}},
		},
		{
			// Build runc without libpathrs, because Debian 12 doesn't contain that library.
			Name: "runc", Path: "github.com/opencontainers/runc", CGO: true,
			Tags:     "seccomp,urfave_cli_no_docs,netgo,osusergo",
			Programs: []Program{{Name: "runc", Kind: bundle.KindBinary}},
		},
		{
			Name: "cni-plugins", Path: "github.com/containernetworking/plugins",
			LDFlags:  "-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion={version}",
			Programs: cniPlugins(),
		},
		{
			Name: "kubernetes", Path: "k8s.io/kubernetes",
			LDFlags: "-X " + k8sVersion + ".gitVersion={version} -X " + k8sVersion + ".gitMajor={major} -X " +
				k8sVersion + ".gitMinor={minor} -X " + k8sVersion + ".gitTreeState=clean",
			Programs: []Program{
				{Name: "kubeadm", Package: "k8s.io/kubernetes/cmd/kubeadm", Kind: bundle.KindBinary},
				{Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl", Kind: bundle.KindBinary},
				{Name: "kubelet", Package: "k8s.io/kubernetes/cmd/kubelet", Kind: bundle.KindBinary},
				{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver", Kind: bundle.KindTool},
				{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager", Kind: bundle.KindTool},
				{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler", Kind: bundle.KindTool},
				{Name: "kube-proxy", Package: "k8s.io/kubernetes/cmd/kube-proxy"},
				{Name: "pause", C: "build/pause/linux/pause.c", Version: pauseVersion},
			},
		},
		{
			Name: "etcd", Path: "go.etcd.io/etcd/server/v3",
			Programs: []Program{
				{Name: "etcd", Kind: bundle.KindTool},
				{Name: "etcdctl", Package: "go.etcd.io/etcd/etcdctl/v3"},
				{Name: "etcdutl", Package: "go.etcd.io/etcd/etcdutl/v3", Kind: bundle.KindTool},
			},
		},
		{Name: "coredns", Path: "github.com/coredns/coredns", Tags: "grpcnotrace", Programs: []Program{{Name: "coredns"}}},
		{
			Name: "flannel", Path: "github.com/flannel-io/flannel", CGO: true, Tags: "netgo,osusergo",
			LDFlags:  "-X github.com/flannel-io/flannel/pkg/version.Version={version}",
			Programs: []Program{{Name: "flanneld"}},
		},
		{
			// Build Prometheus with only the service discovery for Kubernetes. Build it without the web page, because the module doesn't contain the page.
			Name: "prometheus", Path: "github.com/prometheus/prometheus",
			Tags:    "remove_all_sd,enable_kubernetes_sd,enable_dns_sd",
			LDFlags: "-X github.com/prometheus/common/version.Version=" + prometheusVersion[1:],
			Programs: []Program{
				{Name: "prometheus", Package: "github.com/prometheus/prometheus/cmd/prometheus", Version: prometheusVersion},
				{Name: "promtool", Package: "github.com/prometheus/prometheus/cmd/promtool", Version: prometheusVersion, Kind: bundle.KindTool},
			},
		},
		{
			// v0.31.1 is the last release whose module contains Alertmanager's web page.
			Name: "alertmanager", Path: "github.com/prometheus/alertmanager",
			LDFlags:  "-X github.com/prometheus/common/version.Version={number}",
			Programs: []Program{{Name: "alertmanager", Package: "github.com/prometheus/alertmanager/cmd/alertmanager"}},
		},
		{
			Name: "node-exporter", Path: "github.com/prometheus/node_exporter",
			LDFlags:  "-X github.com/prometheus/common/version.Version={number}",
			Programs: []Program{{Name: "node-exporter"}},
		},
		{
			Name: "netcheck", Path: "paictl.openpai.org/netcheck", Own: netcheck.Module(), Version: netcheck.Version,
			Programs: []Program{{Name: "netcheck"}},
		},
		{
			Name: "kwok", Path: "sigs.k8s.io/kwok",
			Programs: []Program{{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok", Kind: bundle.KindTool}},
		},
	}
}

// pauseVersion is the value of TAG in build/pause/Makefile of the pinned Kubernetes.
const pauseVersion = "3.10.2"

// prometheusVersion is the version in the file VERSION of the module v0.315.0.
const prometheusVersion = "v3.15.0"

// cniPlugins returns the plugins of paictl's network, and the usual plugins for InfiniBand and secondary networks.
func cniPlugins() []Program {
	const root = "github.com/containernetworking/plugins/plugins/"
	var out []Program
	for _, p := range []string{
		"main/bridge", "main/host-device", "main/ipvlan", "main/loopback", "main/macvlan",
		"ipam/host-local", "ipam/static",
		"meta/bandwidth", "meta/firewall", "meta/portmap", "meta/tuning",
	} {
		out = append(out, Program{Name: p[len("main/"):], Package: root + p, Kind: bundle.KindCNIPlugin})
	}
	return out
}

// images returns the images, under the names that kubeadm of the pinned release expects. A tag contains the pinned version, so two different images
// never have the same reference.
func images() []Image {
	controlPlane := func(name string) Image {
		return Image{
			Name: name, Ref: "registry.k8s.io/" + name + ":{version}", Roles: []string{master},
			Files: []File{{name, "usr/local/bin/" + name}}, Entrypoint: []string{"/usr/local/bin/" + name},
		}
	}
	return []Image{
		controlPlane("kube-apiserver"),
		controlPlane("kube-controller-manager"),
		controlPlane("kube-scheduler"),
		{
			Name: "kube-proxy", Ref: "registry.k8s.io/kube-proxy:{version}", Debian: netfilterPackages(),
			Files: []File{{"kube-proxy", "usr/local/bin/kube-proxy"}}, Entrypoint: []string{"/usr/local/bin/kube-proxy"},
		},
		{
			Name: "pause", Ref: "registry.k8s.io/pause:{number}",
			Files: []File{{"pause", "pause"}}, Entrypoint: []string{"/pause"},
		},
		{
			// The trailing 0 is upstream's number of the first build of a version.
			Name: "etcd", Ref: "registry.k8s.io/etcd:{number}-0", Roles: []string{master},
			Files: []File{
				{"etcd", "usr/local/bin/etcd"}, {"etcdctl", "usr/local/bin/etcdctl"}, {"etcdutl", "usr/local/bin/etcdutl"},
			},
			Entrypoint: []string{"/usr/local/bin/etcd"},
		},
		{
			Name: "coredns", Ref: "registry.k8s.io/coredns/coredns:{version}",
			Files: []File{{"coredns", "coredns"}}, Entrypoint: []string{"/coredns"},
		},
		{
			Name: "flannel", Ref: "ghcr.io/flannel-io/flannel:{version}", Debian: netfilterPackages(),
			Files: []File{{"flanneld", "opt/bin/flanneld"}}, Entrypoint: []string{"/opt/bin/flanneld"},
		},
		{
			Name: "prometheus", Ref: "paictl.openpai.org/prometheus:{version}", Roles: []string{master}, User: noUser,
			Debian: []string{"ca-certificates"},
			Files:  []File{{"prometheus", "usr/bin/prometheus"}}, Entrypoint: []string{"/usr/bin/prometheus"},
		},
		{
			Name: "node-exporter", Ref: "paictl.openpai.org/node-exporter:{version}", User: noUser,
			Files: []File{{"node-exporter", "usr/bin/node_exporter"}}, Entrypoint: []string{"/usr/bin/node_exporter"},
		},
		{
			Name: "alertmanager", Ref: "paictl.openpai.org/alertmanager:{version}", Roles: []string{master}, User: noUser,
			Debian: []string{"ca-certificates"},
			Files:  []File{{"alertmanager", "usr/bin/alertmanager"}}, Entrypoint: []string{"/usr/bin/alertmanager"},
		},
		{
			// The demo runs netcheck in pods. It shows whether the pods of a cluster can reach each other.
			Name: "netcheck", Ref: "paictl.openpai.org/netcheck:{version}",
			Files: []File{{"netcheck", "netcheck"}}, Entrypoint: []string{"/netcheck"},
		},
		{
			// The jobs in examples/jobs use this image. The files of these jobs contain the image's reference, so the reference must not depend on a
			// distribution's version.
			Name: "examples-python", Ref: bundle.OwnRegistry + "/examples-python:3", Roles: []string{worker},
			Debian:  []string{"bash", "coreutils", "dash", "grep", "libpython3-stdlib", "python3-minimal", "sed", "tar"},
			Package: "python3-minimal",
		},
	}
}
