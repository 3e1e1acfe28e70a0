package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom returns the list of the modules in a program in the format of CycloneDX. It uses the data that the Go linker has stored in the program. The
// list contains no licenses, because the program doesn't contain them.
func sbom(file, version string, when time.Time) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", file, err)
	}
	sum := sha256.Sum256(data)
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid(sum)
	main := cdx.Component{
		BOMRef: purl(info.Main.Path, version), Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version, PackageURL: purl(info.Main.Path, version),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	var settings []cdx.Property
	for _, s := range info.Settings {
		settings = append(settings, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	main.Properties = &settings
	bom.Metadata = &cdx.Metadata{Timestamp: when.Format(time.RFC3339), Component: &main}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: purl("std", goVersion), Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion, PackageURL: purl("std", goVersion),
		Description: "Go's standard library",
	}}
	for _, m := range info.Deps {
		components = append(components, component(m))
	}
	bom.Components = &components
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// component describes a module. Its checksum comes from go.sum, where it is a hash of the module's files and not of an archive.
func component(m *debug.Module) cdx.Component {
	used := m
	if m.Replace != nil {
		used = m.Replace
	}
	c := cdx.Component{BOMRef: purl(used.Path, used.Version), Type: cdx.ComponentTypeLibrary, Name: used.Path, Version: used.Version, PackageURL: purl(used.Path, used.Version)}
	if used.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: used.Sum}}
	}
	return c
}

// purl returns the package URL of a module. It escapes "+", which has a special meaning in URLs.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// uuid returns a UUID of version 8 that is derived from a checksum. So the same program always gets the same UUID.
func uuid(sum [32]byte) string {
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
