package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// These are media types from the specification of OCI images, and of Helm.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
	chartConfig  = "application/vnd.cncf.helm.config.v1+json"
	chartContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// descriptor identifies a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest is the manifest of an image or a chart, or an index.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// layout is an OCI image layout in memory.
type layout struct {
	blobs map[string][]byte // by path
	index manifest
}

func newLayout() *layout {
	return &layout{blobs: map[string][]byte{}, index: manifest{SchemaVersion: 2, MediaType: indexType}}
}

// add stores a blob in the layout, and returns its descriptor.
func (l *layout) add(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	l.blobs["blobs/sha256/"+digest] = data
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: int64(len(data))}
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.add(mediaType, data), err
}

// named adds a manifest to the index, with a reference in the form that containerd and skopeo read.
func (l *layout) named(d descriptor, ref string) {
	d.Annotations = map[string]string{"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref[strings.LastIndex(ref, ":")+1:]}
	l.index.Manifests = append(l.index.Manifests, d)
}

// write writes the layout to a file, as a tar.
func (l *layout) write(file string, when time.Time) error {
	index, err := json.Marshal(l.index)
	if err != nil {
		return err
	}
	entries := []entry{{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {name: "index.json", mode: 0o644, data: index}}
	for name, data := range l.blobs {
		entries = append(entries, entry{name: name, mode: 0o644, data: data})
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(f, entries, when), f.Close())
}

// image builds the image of paictl for Linux. It consists of one image for each architecture, and an index.
func (b *build) image(context.Context) error {
	if err := b.needs("paictl"); err != nil {
		return err
	}
	l := newLayout()
	all := manifest{SchemaVersion: 2, MediaType: indexType}
	for _, p := range b.list() {
		if p.os != "linux" {
			continue
		}
		programs, err := b.binaries(p)
		if err != nil {
			return err
		}
		d, err := l.addImage(programs, b.version, b.commit, p.arch, b.when)
		if err != nil {
			return err
		}
		all.Manifests = append(all.Manifests, d)
	}
	if len(all.Manifests) == 0 {
		return errors.New("--platforms has no platform of Linux")
	}
	d, err := l.addJSON(indexType, all)
	if err != nil {
		return err
	}
	l.named(d, "docker.io/openpai/paictl:"+strings.ReplaceAll(b.version, "+", "_"))
	return l.write(b.file("paictl-image_"+b.version+".tar", "image"), b.when)
}

// addImage adds the image of paictl for an architecture, with the programs below /usr. The image runs as an unprivileged user. The home of the user
// is a volume for keys and settings.
func (l *layout) addImage(programs []entry, version, commit, arch string, when time.Time) (descriptor, error) {
	var layer bytes.Buffer
	files := []entry{
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/root:/sbin/nologin\npaictl:x:65532:65532:paictl:/home/paictl:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\npaictl:x:65532:\n")},
		{name: "home/paictl/", mode: 0o1777},
		{name: "tmp/", mode: 0o1777},
	}
	for _, p := range programs {
		p.name = "usr/" + p.name
		files = append(files, p)
	}
	if err := writeTar(&layer, files, when); err != nil {
		return descriptor{}, err
	}
	diff := sha256.Sum256(layer.Bytes())
	packed, err := gz(layer.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	labels := map[string]string{
		"org.opencontainers.image.title": "paictl", "org.opencontainers.image.version": version, "org.opencontainers.image.revision": commit,
		"org.opencontainers.image.source": "https://" + module, "org.opencontainers.image.licenses": "MIT",
	}
	config, err := l.addJSON(configType, map[string]any{
		"created": when.Format(time.RFC3339), "os": "linux", "architecture": arch,
		"config": map[string]any{
			"Entrypoint": []string{"/usr/bin/paictl"}, "User": "65532:65532", "WorkingDir": "/home/paictl", "Labels": labels,
			"Env": []string{"PATH=/usr/bin", "HOME=/home/paictl"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(diff[:])}},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.addJSON(manifestType, manifest{SchemaVersion: 2, MediaType: manifestType, Config: &config, Layers: []descriptor{l.add(layerType, packed)}, Annotations: labels})
	d.Platform = map[string]string{"os": "linux", "architecture": arch}
	return d, err
}

// charts writes all charts of services to one archive. Each chart has the format in which "helm push" stores charts in a registry.
func (b *build) charts(ctx context.Context) error {
	dir := filepath.Join(b.work, "charts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := b.output(ctx, "go", "run", "./hack/charts", dir); err != nil {
		return err
	}
	archives, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	l := newLayout()
	for _, a := range archives {
		data, err := os.ReadFile(filepath.Join(dir, a.Name()))
		if err != nil {
			return err
		}
		if err := l.addChart(data); err != nil {
			return fmt.Errorf("chart %s: %w", a.Name(), err)
		}
	}
	return l.write(b.file("paictl-charts_"+b.version+".tar", "charts"), b.when)
}

// addChart adds a chart to the layout. archive is the packed chart. The configuration of the chart is its Chart.yaml as JSON.
func (l *layout) addChart(archive []byte) error {
	text, err := member(archive, "Chart.yaml")
	if err != nil {
		return err
	}
	var meta map[string]any
	if err := yaml.Unmarshal(text, &meta); err != nil {
		return fmt.Errorf("read Chart.yaml: %w", err)
	}
	name, _ := meta["name"].(string)
	version, _ := meta["version"].(string)
	if name == "" || version == "" {
		return errors.New("Chart.yaml has no name or no version")
	}
	config, err := l.addJSON(chartConfig, meta)
	if err != nil {
		return err
	}
	d, err := l.addJSON(manifestType, manifest{
		SchemaVersion: 2, MediaType: manifestType, Config: &config, Layers: []descriptor{l.add(chartContent, archive)},
		Annotations: map[string]string{"org.opencontainers.image.title": name, "org.opencontainers.image.version": version},
	})
	// Tags can't contain "+".
	l.named(d, "docker.io/openpai/charts/"+name+":"+strings.ReplaceAll(version, "+", "_"))
	return err
}

// member returns a file from the top folder of a tar.gz.
func member(archive []byte, name string) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it has no %s", name)
		}
		if err != nil {
			return nil, err
		}
		if _, below, _ := strings.Cut(path.Clean(h.Name), "/"); below == name {
			return io.ReadAll(tr)
		}
	}
}
