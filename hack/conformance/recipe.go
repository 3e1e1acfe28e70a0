package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
)

// registry is the registry of the images. Upstream's images have other contents, so the names must differ.
const registry = "paictl.openpai.org/conformance"

// modulesDir holds the pinned modules: Kubernetes in the version of the bundle, with the libraries of its tests, and an older example of an API server.
const modulesDir = "hack/conformance/modules"

// withTests returns a recipe that also contains the images of the tests and ginkgo. The versions of images are those in test/utils/image/manifest.go of
// the pinned Kubernetes. nginx, busybox and dig have Debian's versions.
func withTests(r build.Recipe) (build.Recipe, error) {
	kubernetes, err := pinned("kubernetes", "k8s.io/kubernetes",
		build.Program{Name: "agnhost", Package: "k8s.io/kubernetes/test/images/agnhost"},
		build.Program{Name: "nonewprivs", Package: "k8s.io/kubernetes/test/images/nonewprivs"},
		build.Program{Name: "ginkgo", Package: "github.com/onsi/ginkgo/v2/ginkgo", Kind: bundle.KindTool})
	if err != nil {
		return r, err
	}
	sample, err := pinned("sample-apiserver", "k8s.io/sample-apiserver", build.Program{Name: "sample-apiserver"})
	if err != nil {
		return r, err
	}
	r.Modules = append(slices.Clone(r.Modules), kubernetes, sample)
	r.Images = append(slices.Clone(r.Images), images()...)
	return r, nil
}

// pinned returns a module of modulesDir.
func pinned(name, path string, programs ...build.Program) (build.Module, error) {
	m := build.Module{Name: "conformance-" + name, Path: path, Own: map[string]string{}, Programs: programs}
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(modulesDir, name, file))
		if err != nil {
			return m, err
		}
		m.Own[file] = string(data)
	}
	version := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(path) + `[ \t]+(v\S+)`).FindStringSubmatch(m.Own["go.mod"])
	if version == nil {
		return m, fmt.Errorf("%s/%s/go.mod requires no version of %s", modulesDir, name, path)
	}
	m.Version = version[1]
	return m, nil
}

// images returns the images of the conformance tests that the bundle doesn't contain under their names.
func images() []build.Image {
	shell := []string{"bash", "coreutils", "dash", "grep", "sed"}
	agnhost := build.Image{
		Name: "agnhost", Ref: registry + "/agnhost:2.63.0",
		Files:      []build.File{{Program: "agnhost", Path: "agnhost"}, {Program: "coredns", Path: "coredns"}},
		Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"},
		Debian: append([]string{"bind9-dnsutils", "curl", "iperf", "iproute2", "netcat-openbsd", "util-linux"}, shell...),
		Entries: []oci.Entry{
			{Path: "agnhost-2", Link: "agnhost"},
			{Path: "uploads", Dir: true, Mode: 0o755},
			text("etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n"),
			text("etc/group", "root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"),
		},
	}
	previous := agnhost
	previous.Name, previous.Ref = "agnhost-previous", registry+"/agnhost:2.55"
	pet := func(name string) build.Image {
		img := agnhost
		img.Name, img.Ref, img.Cmd = name, registry+"/"+name+":1.8", []string{"test-webserver"}
		img.Entries = append(slices.Clone(img.Entries), text("data.json", "{\n  \"image\": \""+name+".jpg\"\n}\n"))
		return img
	}
	busybox := build.Image{
		Name: "busybox", Ref: registry + "/busybox:1.37.0-1", Package: "busybox-static", Debian: []string{"busybox-static"},
		Cmd: []string{"sh"}, Entries: applets(),
	}
	nonRoot := busybox
	nonRoot.Name, nonRoot.Ref, nonRoot.User = "nonroot", registry+"/nonroot:1.5", "1234"
	webserver := build.Image{
		Name: "nginx", Ref: registry + "/nginx:1.15-4", Package: "nginx", Debian: append([]string{"nginx"}, shell...),
		Cmd: []string{"nginx", "-g", "daemon off;"},
		Entries: []oci.Entry{
			text("etc/nginx/nginx.conf", "user root;\npid /run/nginx.pid;\nevents {}\nhttp {\n\taccess_log /dev/stdout;\n\tserver {\n\t\tlisten 80;\n\t\troot /usr/share/nginx/html;\n\t}\n}\n"),
			text("usr/share/nginx/html/index.html", "<!DOCTYPE html>\n<title>Welcome to nginx!</title>\n<h1>Welcome to nginx!</h1>\n"),
			{Path: "run", Dir: true, Mode: 0o755}, {Path: "var/log/nginx", Dir: true, Mode: 0o755}, {Path: "var/lib/nginx", Dir: true, Mode: 0o755},
		},
	}
	newer := webserver
	newer.Name, newer.Ref = "nginx-new", registry+"/nginx:1.27-0"
	return []build.Image{
		agnhost, previous, pet("kitten"), pet("nautilus"), busybox, nonRoot, webserver, newer,
		{
			Name: "glibc-dns-testing", Ref: registry + "/glibc-dns-testing:2.0.0", Package: "bind9-dnsutils",
			Debian: append([]string{"bind9-dnsutils"}, shell...), Files: []build.File{{Program: "coredns", Path: "coredns"}},
		},
		{
			// The program prints its user. The tests check whether a container may change it.
			Name: "nonewprivs", Ref: registry + "/nonewprivs:1.4", Files: []build.File{{Program: "nonewprivs", Path: "usr/local/bin/nnp"}},
			Setuid: true, Cmd: []string{"nnp"},
		},
		{
			Name: "sample-apiserver", Ref: registry + "/sample-apiserver:1.29.2", Entrypoint: []string{"/sample-apiserver"},
			Files: []build.File{{Program: "sample-apiserver", Path: "sample-apiserver"}},
		},
		{
			// The API server of the tests stores its objects in an etcd of the same pod, which may be on a worker. The bundle's image is on masters only.
			Name: "etcd-for-tests", Ref: registry + "/etcd:3.6.8-0", Files: []build.File{{Program: "etcd", Path: "usr/local/bin/etcd"}},
			Entrypoint: []string{"/usr/local/bin/etcd"},
		},
	}
}

func text(path, content string) oci.Entry {
	return oci.Entry{Path: path, Mode: 0o644, Data: []byte(content)}
}

// applets returns links to busybox for the commands that the tests call. The scripts of the package would make them.
func applets() []oci.Entry {
	var out []oci.Entry
	for name := range strings.FieldsSeq(`[ awk base64 basename cat chgrp chmod chown cp cut date dd df dirname dmesg du echo egrep env expr false fgrep find free
		getopt grep head hostname id ifconfig ip kill killall less ln ls md5sum mkdir mkfifo mknod mktemp more mount mv nc netstat nslookup od passwd ping
		ping6 pkill printenv printf ps pwd readlink realpath rm rmdir route sed seq sh sha256sum sleep sort stat stty su sync tail tar tee telnet test
		time timeout top touch tr traceroute true tty umount uname uniq unlink uptime usleep vi wc wget which whoami xargs yes`) {
		out = append(out, oci.Entry{Path: "usr/bin/" + name, Link: "busybox"})
	}
	return out
}
