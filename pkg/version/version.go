// Package version identifies the running paictl.
// In: data that the linker and the Go toolchain recorded. Out: version, commit, build date and the Kubernetes that this paictl installs.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Version is the version of this paictl. The linker sets it: -X github.com/openpai/paictl/pkg/version.Version=v1.2.3.
var Version = "v0.1.0-dev"

// Kubernetes is the release of Kubernetes that this paictl installs, and that the tests use.
const Kubernetes = "v1.36.3"

// Tag returns the version as the tag of an image. A tag can't contain "+", so v0.1.0-dev+1a2b becomes v0.1.0-dev_1a2b, as in Helm.
func Tag() string { return strings.ReplaceAll(Version, "+", "_") }

// OfTag returns the version of an image's tag, for people.
func OfTag(tag string) string { return strings.Replace(tag, "_", "+", 1) }

// Build describes the running binary.
type Build struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Date       string `json:"date,omitempty"`
	Modified   bool   `json:"modified,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes"`
}

// Get returns the Build of the running binary.
func Get() Build {
	b := Build{
		Version: Version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kubernetes: Kubernetes,
	}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
