// Package chart reads the services' charts for a bundle.
// In: a file system with a folder per chart. Out: each chart's metadata, the images in its values, and an archive that any Helm client can install.
package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// placement is the annotation that lists the roles of the machines on which a service runs.
const placement = "paictl.openpai.org/placement"

// Chart is one service's chart.
type Chart struct {
	Name    string
	Version string
	// Roles lists the roles of the machines that run the service's pods, as in a bundle's manifest. It is empty if the pods run on both kinds of
	// machines or on any machine.
	Roles []string
	// Images lists the upstream images in the chart's values, without duplicates.
	Images []Image

	files fs.FS
}

// Image is an image in a registry.
type Image struct {
	Repository string // with the registry's host: quay.io/prometheus/prometheus
	Tag        string
	Digest     string // "" if the chart doesn't pin one
}

// Name returns the last element of the repository's path.
func (i Image) Name() string { return path.Base(i.Repository) }

// Ref returns the image's reference on nodes.
func (i Image) Ref() string { return i.Repository + ":" + i.Tag }

// meta holds the fields of Chart.yaml that this package reads.
type meta struct {
	Name        string            `yaml:"name"`
	Version     string            `yaml:"version"`
	Annotations map[string]string `yaml:"annotations"`
}

// List reads the charts below the folder charts, sorted by the names of their folders.
func List(files fs.FS) ([]Chart, error) {
	dirs, err := fs.ReadDir(files, "charts")
	if err != nil {
		return nil, fmt.Errorf("list charts: %w", err)
	}
	var out []Chart
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		c, err := read(files, "charts/"+d.Name())
		if err != nil {
			return nil, fmt.Errorf("read chart %s: %w", d.Name(), err)
		}
		out = append(out, c)
	}
	return out, nil
}

func read(files fs.FS, dir string) (Chart, error) {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		return Chart{}, err
	}
	var m meta
	if err := decode(sub, "Chart.yaml", &m); err != nil {
		return Chart{}, err
	}
	if m.Name != path.Base(dir) || m.Version == "" {
		return Chart{}, fmt.Errorf("its Chart.yaml has name %q and version %q, want the folder's name and a version", m.Name, m.Version)
	}
	values := map[string]any{}
	if err := decode(sub, "values.yaml", &values); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Chart{}, err
	}
	c := Chart{Name: m.Name, Version: m.Version, files: sub, Images: images(values)}
	if role := strings.TrimSpace(m.Annotations[placement]); role == "master" || role == "worker" {
		c.Roles = []string{role}
	}
	return c, nil
}

func decode(files fs.FS, name string, into any) error {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// images returns the images in a chart's values: every map with a repository and a tag. It skips an image with an empty repository or tag, because
// paictl fills in these values.
func images(value any) []Image {
	var out []Image
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			repository, _ := v["repository"].(string)
			tag, _ := v["tag"].(string)
			digest, _ := v["digest"].(string)
			if repository != "" && tag != "" {
				out = append(out, Image{Repository: withHost(repository), Tag: tag, Digest: digest})
			}
			for _, key := range sorted(v) {
				walk(v[key])
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(value)
	slices.SortFunc(out, func(a, b Image) int { return strings.Compare(a.Ref(), b.Ref()) })
	return slices.Compact(out)
}

// withHost adds the default registry to a repository without a host.
func withHost(repository string) string {
	host, rest, ok := strings.Cut(repository, "/")
	switch {
	case !ok:
		return "docker.io/library/" + repository
	case rest != "" && (strings.ContainsAny(host, ".:") || host == "localhost"):
		return repository
	default:
		return "docker.io/" + repository
	}
}
