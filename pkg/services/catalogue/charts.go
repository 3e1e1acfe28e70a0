package catalogue

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"gopkg.in/yaml.v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/openpai/paictl/templates"
)

// chartsFolder is the folder in Options.Charts that contains the charts.
const chartsFolder = "charts"

type embeddedChart struct {
	*chart.Chart
	valuesFile []byte // values.yaml as it is written, with its comments
	requires   []string
	placement  []string
	claims     []Claim
	hostPorts  []string // dotted paths of values
	enabled    bool
	schema     *valuesSchema
}

// ours returns the charts of this paictl. Callers must not change the charts. A test checks the schemas of these charts against the meta-schema.
var ours = sync.OnceValues(func() (map[string]*embeddedChart, error) { return readAll(templates.Charts(), schemaOfOurs) })

// readCharts returns all charts in a file system, by name. If files is nil, readCharts returns the charts of this paictl.
func readCharts(files fs.FS) (map[string]*embeddedChart, error) {
	if files == nil {
		all, err := ours()
		return maps.Clone(all), err
	}
	return readAll(files, schemaOfOthers)
}

func readAll(files fs.FS, schemaAddress string) (map[string]*embeddedChart, error) {
	entries, err := fs.ReadDir(files, chartsFolder)
	if err != nil {
		return nil, fmt.Errorf("read the charts: %w", err)
	}
	charts := make([]*embeddedChart, len(entries))
	var group errgroup.Group // compiling the schemas is most of the time
	for i, e := range entries {
		// Only folders with a Chart.yaml are charts.
		if _, err := fs.Stat(files, path.Join(chartsFolder, e.Name(), "Chart.yaml")); err != nil {
			continue
		}
		group.Go(func() error {
			c, err := readChart(files, path.Join(chartsFolder, e.Name()), schemaAddress)
			if err != nil {
				return fmt.Errorf("chart %s: %w", e.Name(), err)
			}
			if c.Name() != e.Name() {
				return fmt.Errorf("chart %s: Chart.yaml calls it %q", e.Name(), c.Name())
			}
			charts[i] = c
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := map[string]*embeddedChart{}
	for _, c := range charts {
		if c != nil {
			out[c.Name()] = c
		}
	}
	return out, nil
}

func readChart(files fs.FS, dir, schemaAddress string) (*embeddedChart, error) {
	var buffered []*loader.BufferedFile
	err := fs.WalkDir(files, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, p)
		buffered = append(buffered, &loader.BufferedFile{Name: strings.TrimPrefix(p, dir+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, err
	}
	out := &embeddedChart{Chart: c, enabled: true}
	for _, f := range c.Raw {
		if f.Name == "values.yaml" {
			out.valuesFile = f.Data
		}
	}
	if err := out.readAnnotations(); err != nil {
		return nil, err
	}
	if out.schema, err = newValuesSchema(c.Schema, schemaAddress); err != nil {
		return nil, fmt.Errorf("values.schema.json: %w", err)
	}
	out.schema.beside = []string{keyEnabled}
	if out.hasPods() {
		out.schema.beside = append(out.schema.beside, keyPlacement)
	}
	return out, nil
}

func (c *embeddedChart) readAnnotations() error {
	a := c.Metadata.Annotations
	c.requires = words(a[AnnotationRequires])
	c.hostPorts = words(a[AnnotationHostPorts])
	if c.placement = words(a[AnnotationPlacement]); len(c.placement) == 0 {
		return fmt.Errorf("the annotation %s is missing", AnnotationPlacement)
	}
	if bad := badPlacement(c.placement); bad != "" {
		return fmt.Errorf("annotation %s: %s", AnnotationPlacement, bad)
	}
	if text := a[AnnotationClaims]; text != "" {
		dec := yaml.NewDecoder(strings.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(&c.claims); err != nil {
			return fmt.Errorf("annotation %s: %w", AnnotationClaims, err)
		}
	}
	for _, claim := range c.claims {
		if claim.Name == "" || claim.Owner <= 0 {
			return fmt.Errorf("annotation %s: a claim needs a name, and an owner that isn't root", AnnotationClaims)
		}
	}
	if text := a[AnnotationEnabled]; text != "" {
		enabled, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("annotation %s: %q is neither true nor false", AnnotationEnabled, text)
		}
		c.enabled = enabled
	}
	return nil
}

func (c *embeddedChart) hasPods() bool { return !slices.Contains(c.placement, PlacementNone) }

func words(text string) []string {
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}
