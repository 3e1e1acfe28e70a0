package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Format of a configuration folder, in words that continue "the configuration is of".
type Format string

// Formats of a configuration folder.
const (
	Current Format = "paictl's own format"
	G0      Format = "the format of OpenPAI 0.9 and older (cluster-configuration.yaml)"
	G1      Format = "the format of OpenPAI 0.10 to 0.17"
	G15     Format = "the format of OpenPAI 1.0 to 1.4 (master.csv, worker.csv)"
	G2      Format = "the format of OpenPAI 1.5 and later"
)

// Detect returns the format of a folder's configuration. Two incompatible formats of the
// original share the name layout.yaml: the older has k8s-role, nodename or a SKU's gpu;
// the later computing-device, or config.yaml beside it.
func Detect(dir string) (Format, error) {
	exists := func(name string) bool { return fileExists(filepath.Join(dir, name)) }
	data, err := os.ReadFile(filepath.Join(dir, LayoutFile))
	if err != nil {
		switch {
		case exists("cluster-configuration.yaml"):
			return G0, nil
		case exists("master.csv"):
			return G15, nil
		}
		return "", fmt.Errorf("read the layout: %w", err)
	}
	doc, findings := strictyaml.Parse(filepath.Join(dir, LayoutFile), data)
	if len(findings) > 0 {
		return "", findings
	}
	return detectLayout(doc, exists("config.yaml")), nil
}

func detectLayout(doc *strictyaml.Document, hasConfig bool) Format {
	if doc.Has("apiVersion") {
		return Current
	}
	score := map[Format]int{}
	for _, key := range []string{"k8s-role", "nodename", "username", "password", "sshport", "keyfile-path", "docker-data", "etcdid", "zkid", "dashboard", "ssh-port"} {
		if doc.Has("machine-list", 0, key) {
			score[G1]++
		}
	}
	for _, sku := range doc.Keys("machine-sku") {
		if doc.Has("machine-sku", sku, "computing-device") {
			score[G2] += 2
		}
	}
	labels := doc.Has("machine-list", 0, "pai-master") || doc.Has("machine-list", 0, "pai-worker")
	switch {
	case score[G1] > 0:
		return G1
	case score[G2] > 0, hasConfig && labels, labels:
		return G2
	}
	return Current
}
