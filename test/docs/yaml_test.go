package docs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	framework "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/templates"
)

// example is a YAML text in a page.
type example struct {
	place string
	text  string
	keys  []string // at the top; none of a list
}

func (e example) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(e.keys, key) })
}

// examples returns the blocks that contain a YAML map or list. Commands and their output are plain text, so they aren't returned. Text that a
// command writes to a YAML file is an example, too.
func examples(t *testing.T) []example {
	t.Helper()
	var out []example
	add := func(place, text string, certain bool) {
		var node yaml.Node
		err := yaml.Unmarshal([]byte(text), &node)
		if certain {
			require.NoError(t, err, place)
		}
		if err != nil || len(node.Content) == 0 {
			return
		}
		e := example{place: place, text: text}
		switch top := node.Content[0]; top.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(top.Content); i += 2 {
				e.keys = append(e.keys, top.Content[i].Value)
			}
			out = append(out, e)
		case yaml.SequenceNode:
			out = append(out, e)
		}
	}
	for _, p := range everyPage(t) {
		for _, b := range p.Blocks {
			if b.Marks[unchecked] != "" {
				continue
			}
			switch b.Lang {
			case "yaml":
				add(b.Place(), b.Text, true)
			case "":
				add(b.Place(), b.Text, false)
			}
			for name, text := range b.Inputs() {
				if strings.HasSuffix(name, ".yaml") {
					add(b.Place()+" ("+name+")", text, true)
				}
			}
		}
	}
	return out
}

// People copy the examples. In an example, only values that depend on the cluster, such as names of machines, may be wrong.
func TestTheExamplesOfTheDocumentsAreValid(t *testing.T) {
	found := examples(t)
	for _, e := range found {
		t.Run(e.place, func(t *testing.T) { check(t, e) })
	}
	assert.Greater(t, len(found), 30, "the examples are found")
}

func check(t *testing.T, e example) {
	sections := sectionsOf(t)
	services := !slices.ContainsFunc(e.keys, func(key string) bool { return !slices.Contains(sections, key) })
	switch {
	case e.has("apiVersion"):
		checkManifests(t, e.text)
	case e.has("metadata"): // a part of a pod
		checkManifests(t, "apiVersion: v1\nkind: Pod\n"+e.text)
	case e.has("resources"): // a part of a container
		checkManifests(t, "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - "+indented("    ", e.text))
	case e.has("machine-list", "machine-sku"):
		checkFolder(t, config.LayoutFile, e.text)
	case e.has("machines"):
		_, found := config.ParseQuickStart(e.place, []byte(e.text))
		noErrors(t, found)
	case e.has("services"):
		_, found := config.ParseQuickStart(e.place, []byte("machines: [10.0.0.1]\n"+e.text))
		noErrors(t, found)
	case e.has("kubernetes"):
		checkFolder(t, config.KubernetesFile, e.text)
	case e.has("taskRoles"):
		_, found := protocol.Parse(e.place, []byte(e.text))
		noErrors(t, found)
	case e.has("extras"):
		_, found := protocol.Parse(e.place, []byte(smallJob+e.text))
		noErrors(t, found)
	case strings.HasPrefix(e.text, "- code:"):
		_, found := rules.Parse(e.place, []byte(e.text))
		noErrors(t, found)
	case strings.HasPrefix(e.text, "- {op:"):
		checkSteps(t, e)
	case strings.HasPrefix(e.text, report.Start):
		_, ok := report.Decode(e.text)
		assert.True(t, ok, "it is a report")
	case e.has("physicalCluster", "virtualClusters"):
		_, found := schedulerconfig.Parse(e.place, []byte(e.text))
		noErrors(t, found)
	case e.has("leafCellNumber"):
		_, err := annotation.ParseRequest(e.text, "jobs/pod")
		require.NoError(t, err)
	case e.has("alerts"):
		checkFolder(t, config.ServicesFile, "prometheus:\n  "+indented("  ", e.text))
	case e.has("receivers"):
		checkFolder(t, config.ServicesFile, "alert-manager:\n  "+indented("  ", e.text))
	case len(e.keys) > 0 && (services || strings.Contains("\n"+e.text, "\n  chart: ")):
		checkFolder(t, config.ServicesFile, e.text)
	default:
		t.Errorf("this test can't tell what the example is: its keys are %v. Make it whole, add a rule here, or put <!-- %s: REASON --> above it", e.keys, unchecked)
	}
}

const smallJob = `protocolVersion: 2
name: a
type: job
prerequisites: [{name: i, type: dockerimage, uri: ubuntu}]
taskRoles: {main: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}}
`

// indented indents all lines of a text except the first, so that the text can follow a key.
func indented(by, text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by) + "\n"
}

// sectionsOf returns the names of the sections that services-configuration.yaml may contain.
func sectionsOf(t *testing.T) []string {
	t.Helper()
	entries, err := fs.ReadDir(templates.Charts(), "charts")
	require.NoError(t, err)
	out := []string{"cluster"}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

// ofACluster reports whether an example may violate a rule of the configuration because the example belongs to another cluster.
func ofACluster(rule string) bool {
	return slices.ContainsFunc([]string{"layout/", "scheduler/", "storage/", "services/placement", "services/requires", "sku/"}, func(p string) bool { return strings.HasPrefix(rule, p) })
}

func noErrors(t *testing.T, found strictyaml.Findings) {
	t.Helper()
	for _, f := range found.Errors() {
		if !ofACluster(f.Rule) {
			t.Errorf("%s", f)
		}
	}
}

// checkFolder adds a file to a valid configuration, and asserts that the configuration stays valid.
func checkFolder(t *testing.T, name, text string) {
	t.Helper()
	dir := t.TempDir()
	quick := filepath.Join(dir, "quick-start.yaml")
	require.NoError(t, os.WriteFile(quick, []byte("machines: [10.0.0.1, 10.0.0.2]\nssh-username: root\ndns: 10.0.0.53\n"), 0o600))
	folder := filepath.Join(dir, "c")
	_, err := config.Generate(t.Context(), config.Generation{QuickStart: quick, OutDir: folder, Offline: true})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	found, err := config.ValidateDir(folder, services.Check)
	require.NoError(t, err)
	noErrors(t, found)
}

// checkManifests decodes objects of Kubernetes strictly, each according to its kind.
func checkManifests(t *testing.T, text string) {
	t.Helper()
	types := runtime.NewScheme()
	require.NoError(t, errors.Join(scheme.AddToScheme(types), apiextensions.AddToScheme(types), framework.AddToScheme(types)))
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var one yaml.Node
		err := documents.Decode(&one)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, yaml.NewEncoder(&b).Encode(&one))
		_, _, err = decoder.Decode(b.Bytes(), nil, nil)
		assert.NoError(t, err)
	}
}

const smallCluster = `physicalCluster:
  cellTypes: {NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}}
  physicalCells: [{cellType: NODE, cellAddress: a0}]
virtualClusters: {test: {virtualCells: [{cellType: NODE, cellNumber: 1}]}}
`

// checkSteps replays the steps of an example on a cluster with one machine, a0. The configurations that the steps name are files of the reader, so
// they are replaced with this cluster's configuration.
func checkSteps(t *testing.T, e example) {
	t.Helper()
	options := sim.ReplayOptions{ReadFile: func(string) ([]byte, error) { return []byte(smallCluster), nil }}
	require.NoError(t, sim.Replay(t.Context(), e.place, []byte(e.text), options, func(line *sim.Line) error {
		assert.NotEqual(t, sim.Failed, line.Result, "step %d: %s", line.Step, line.Reason)
		return nil
	}))
}
