// Package release checks files against the signed list of a release's checksums.
// In: a list, its signature, the public key of releases, files, an address. Out: which files belong to the release, and the newest release of an
// address.
package release

import (
	"strings"
)

// PublicKey is the public part of the key that signs releases, in minisign's format. The linker sets it in a released paictl: -X
// github.com/openpai/paictl/pkg/release.PublicKey=RW…
var PublicKey = ""

// Address is the URL below which releases are published. The linker may set another URL.
var Address = "https://github.com/openpai/paictl/releases"

const (
	// ListFile is the name of the file that lists the checksums of a release's files, in the format of sha256sum.
	ListFile = "checksums.txt"
	// SignatureFile is the name of the file with minisign's signature of ListFile.
	SignatureFile = ListFile + ".minisig"
)

// Programs returns the programs of a release. paictl starts the others, which are installed beside it.
func Programs() []string { return []string{"paictl", "paictl-history"} }

// Program returns the file name of a release's program for a platform.
func Program(name, version, goos, arch string) string {
	return name + "_" + version + "_" + goos + "_" + arch
}

// BundleArchive returns the file name of a release's bundle for machines with an architecture.
func BundleArchive(version, arch string) string {
	return "paictl-bundle_" + version + "_linux_" + arch + ".tar.zst"
}

// URL returns the address of a file of a release. An empty version means the newest release. The paths are the same as in a GitHub project, so that
// a mirror can be a folder of plain files.
func URL(address, version, file string) string {
	address = strings.TrimRight(address, "/")
	if version == "" {
		return address + "/latest/download/" + file
	}
	return address + "/download/" + version + "/" + file
}
