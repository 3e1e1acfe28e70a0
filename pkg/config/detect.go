package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Format is the format of a configuration folder. Messages print it after "the configuration is of".
type Format string

// The formats of a configuration folder.
const (
	Current Format = "paictl's own format"
	G0      Format = "the format of OpenPAI 0.9 and older (cluster-configuration.yaml)"
	G1      Format = "the format of OpenPAI 0.10 to 0.17"
	G15     Format = "the format of OpenPAI 1.0 to 1.4 (master.csv, worker.csv)"
	G2      Format = "the format of OpenPAI 1.5 and later"
	// Unknown is the format of a folder without any characteristics of the other formats.
	Unknown Format = "no format that paictl knows"
)

// Detect returns the format of the configuration in a folder. OpenPAI has two incompatible formats with a file layout.yaml. In the older format,
// machines have k8s-role, nodename or a login. In the later format, machines have pai-master or pai-worker, and SKUs have computing-device.
func Detect(dir string) (Format, error) {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
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
	return detectLayout(doc), nil
}

func detectLayout(doc *strictyaml.Document) Format {
	if doc.Has("apiVersion") {
		return Current
	}
	score := map[Format]int{}
	for i := 0; doc.Has("machine-list", i); i++ {
		for _, key := range doc.Keys("machine-list", i) {
			switch key {
			case "k8s-role", "nodename", "username", "password", "sshport", "keyfile-path", "docker-data", "etcdid", "zkid", "dashboard", "ssh-port":
				score[G1]++
			case "pai-master", "pai-worker":
				score[G2]++
			case "roles":
				score[Current]++
			}
		}
	}
	for _, sku := range doc.Keys("machine-sku") {
		if doc.Has("machine-sku", sku, "computing-device") {
			score[G2]++
		}
	}
	switch {
	case score[G1] > 0:
		return G1
	case score[G2] > 0:
		return G2
	case score[Current] > 0 || doc.Has("kind") || doc.Has("ssh"):
		return Current
	}
	return Unknown
}
