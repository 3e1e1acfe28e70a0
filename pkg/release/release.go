// Package release checks files against the signed list of a release's checksums.
// In: a list, its signature, the public key of releases, files, an address. Out: which files belong to the release, and the newest release of an
// address.
package release

import (
	"strings"
)

// PublicKey is the public half of the key that signs releases, in minisign's form. The linker sets it in a
// released paictl: -X github.com/openpai/paictl/pkg/release.PublicKey=RW…
var PublicKey = ""

// Address is the URL below which releases are published. The linker may set another.
var Address = "https://github.com/openpai/paictl/releases"

const (
	// ListFile is the list of a release's files with their checksums, as sha256sum writes it.
	ListFile = "checksums.txt"
	// SignatureFile is the signature of ListFile by minisign.
	SignatureFile = ListFile + ".minisig"
)

// Programs returns the programs of a release. paictl starts the others, which are installed beside it.
func Programs() []string { return []string{"paictl", "paictl-history"} }

// Program returns the file name of a release's program for a platform.
func Program(name, version, goos, arch string) string {
	return name + "_" + version + "_" + goos + "_" + arch
}

// BundleArchive returns the file name of a release's bundle for the machines of an architecture.
func BundleArchive(version, arch string) string {
	return "paictl-bundle_" + version + "_linux_" + arch + ".tar.zst"
}

// URL returns the address of a file of a release. An empty version is the newest release.
// The paths are as in a GitHub project, so that a mirror is a folder of plain files.
func URL(address, version, file string) string {
	address = strings.TrimRight(address, "/")
	if version == "" {
		return address + "/latest/download/" + file
	}
	return address + "/download/" + version + "/" + file
}
