package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// platform is the system on which a tier has run. hack/support fills the tables of docs/support.md with these systems. Sandbox hosts have the
// control groups and the architecture of their machine. They also have its distribution, unless PAICTL_TEST_RELEASE selects another distribution.
type platform struct {
	System string `json:"system,omitempty"` // such as "debian 12"
	Cgroup string `json:"cgroup,omitempty"` // v1, also on hybrid machines, since containers are then in v1; or v2
	Arch   string `json:"arch"`
	// Kubernetes is the release of Kubernetes in the bundle, such as "v1.36.3"; "" if the run had no bundle.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// thisPlatform returns the platform of this machine, which it determines from files below root.
func thisPlatform(root string) platform {
	p := platform{Arch: runtime.GOARCH}
	text, _ := os.ReadFile(filepath.Join(root, "etc", "os-release"))
	p.System = strings.TrimSpace(setting(string(text), "ID") + " " + setting(string(text), "VERSION_ID"))
	mounts, _ := os.ReadFile(filepath.Join(root, "proc", "mounts"))
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup" {
			p.Cgroup = "v1"
		} else if len(f) > 2 && f[2] == "cgroup2" && p.Cgroup == "" {
			p.Cgroup = "v2"
		}
	}
	return p
}

// codenames maps the valid values of PAICTL_TEST_RELEASE to systems.
var codenames = map[string]string{"bookworm": "debian 12", "trixie": "debian 13", "jammy": "ubuntu 22.04", "noble": "ubuntu 24.04"}

// systemOfHosts returns the system of sandbox hosts. It is the system of the release if a release is given, and otherwise this machine's system.
func systemOfHosts(own, release string) (string, error) {
	if release == "" {
		return own, nil
	}
	system, ok := codenames[release]
	if !ok {
		return "", fmt.Errorf("PAICTL_TEST_RELEASE: %q is not one of %s", release, strings.Join(slices.Sorted(maps.Keys(codenames)), ", "))
	}
	return system, nil
}

// setting returns the value of a key in a file of shell variables, or "".
func setting(text, key string) string {
	m := regexp.MustCompile(`(?m)^` + key + `=["']?([^"'\n]*)`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

var kubernetesLine = regexp.MustCompile(`(?m)^kubernetes: (v\S+)$`)

// kubernetesOf returns the release of Kubernetes in a bundle, or "" if the bundle's manifest doesn't contain it.
func kubernetesOf(bundle string) string {
	text, _ := os.ReadFile(filepath.Join(bundle, "manifest.yaml"))
	m := kubernetesLine.FindStringSubmatch(string(text))
	if m == nil {
		return ""
	}
	return m[1]
}
