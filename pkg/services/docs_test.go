package services

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/protocol"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/templates"
)

// block is a piece of YAML in a page.
type block struct {
	place string
	text  string
	keys  []string // at the top; none of a list
}

// blocksOf finds the indented and the fenced blocks of a page that are maps or lists in YAML. Commands and
// what they print are text, and aren't either.
func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	var out []block
	add := func(at int, text string) {
		var node yaml.Node
		if yaml.Unmarshal([]byte(text), &node) != nil || len(node.Content) == 0 {
			return
		}
		b := block{place: fmt.Sprintf("%s:%d", filepath.Base(page), at+1), text: text}
		switch top := node.Content[0]; top.Kind {
		case yaml.MappingNode:
			for i := 0; i < len(top.Content); i += 2 {
				b.keys = append(b.keys, top.Content[i].Value)
			}
			out = append(out, b)
		case yaml.SequenceNode:
			out = append(out, b)
		}
	}
	for i := 0; i < len(lines); i++ {
		begin := i
		var text strings.Builder
		switch {
		case strings.HasPrefix(lines[i], "```yaml"):
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				text.WriteString(lines[i] + "\n")
			}
		case strings.HasPrefix(lines[i], "    ") && (i == 0 || strings.TrimSpace(lines[i-1]) == ""):
			for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || strings.TrimSpace(lines[i]) == ""); i++ {
				text.WriteString(strings.TrimPrefix(lines[i], "    ") + "\n")
			}
			i--
		default:
			continue
		}
		add(begin, text.String())
	}
	return out
}

// Examples are what people copy. What depends on a cluster, such as names of its machines, may be wrong in one.
func TestTheExamplesOfTheDocsAreValid(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		for _, b := range blocksOf(t, page) {
			seen++
			t.Run(b.place, func(t *testing.T) { checkExample(t, b) })
		}
	}
	assert.Greater(t, seen, 15, "the examples are found")
}

// ofACluster are the rules that an example may break, since its cluster isn't this one.
func ofACluster(rule string) bool {
	return slices.ContainsFunc([]string{"layout/", "scheduler/", "storage/", "services/placement", "services/requires", "sku/"}, func(p string) bool { return strings.HasPrefix(rule, p) })
}

func noErrors(t *testing.T, found config.Findings) {
	t.Helper()
	for _, f := range found.Errors() {
		if !ofACluster(f.Rule) {
			t.Errorf("%s", f)
		}
	}
}

func checkExample(t *testing.T, b block) {
	has := func(key string) bool { return slices.Contains(b.keys, key) }
	services := servicesOf(t)
	switch {
	case has("apiVersion"): // of Kubernetes: applied by the tests of pkg/job
	case has("metadata"), has("resources"): // a part of a pod
	case has("machine-list"), has("machine-sku"):
		checkFiles(t, map[string]string{config.LayoutFile: b.text})
	case has("machines"):
		_, found := config.ParseQuickStart(b.place, []byte(b.text))
		noErrors(t, found)
	case has("services"):
		_, found := config.ParseQuickStart(b.place, []byte("machines: [10.0.0.1]\n"+b.text))
		noErrors(t, found)
	case has("kubernetes"):
		checkFiles(t, map[string]string{config.KubernetesFile: b.text})
	case has("extras"):
		_, found := protocol.Parse(b.place, []byte(smallJob+b.text))
		noErrors(t, found)
	case has("taskRoles"):
		_, found := protocol.Parse(b.place, []byte(b.text))
		noErrors(t, found)
	case strings.HasPrefix(b.text, "- code:"):
		_, found := rules.Parse(b.place, []byte(b.text))
		noErrors(t, found)
	case strings.HasPrefix(b.text, "- {op:"): // steps for paictl scheduler replay, with files of their own
	case strings.HasPrefix(b.text, "[PAI_RUNTIME_ERROR_START]"): // an exit report; pkg/runtime/report has its tests
	case has("alerts"):
		checkFiles(t, map[string]string{config.ServicesFile: section("prometheus", b.text)})
	case has("receivers"):
		checkFiles(t, map[string]string{config.ServicesFile: section("alert-manager", b.text)})
	case has("chart"), len(b.keys) > 0 && strings.Contains(b.text, "\n  chart: "):
		checkFiles(t, map[string]string{config.ServicesFile: b.text})
	case len(b.keys) > 0 && !slices.ContainsFunc(b.keys, func(key string) bool { return !slices.Contains(services, key) }):
		checkFiles(t, map[string]string{config.ServicesFile: b.text})
	default:
		t.Errorf("no rule of this test says what this example is of: its keys are %v", b.keys)
	}
}

const smallJob = `protocolVersion: 2
name: a
type: job
prerequisites: [{name: i, type: dockerimage, uri: ubuntu}]
taskRoles: {main: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}}
`

func section(name, text string) string {
	return name + ":\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// servicesOf are the sections that services-configuration.yaml may have.
func servicesOf(t *testing.T) []string {
	t.Helper()
	entries, err := templates.Charts.ReadDir("charts")
	require.NoError(t, err)
	out := []string{"cluster"}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

// checkFiles puts files into a configuration that is right without them.
func checkFiles(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	quick := filepath.Join(dir, "quick-start.yaml")
	require.NoError(t, os.WriteFile(quick, []byte("machines: [10.0.0.1, 10.0.0.2]\nssh-username: root\ndns: 10.0.0.53\n"), 0o600))
	folder := filepath.Join(dir, "c")
	_, err := config.Generate(t.Context(), config.Generation{QuickStart: quick, OutDir: folder, Offline: true})
	require.NoError(t, err)
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	found, err := config.ValidateDir(folder, Check)
	require.NoError(t, err)
	noErrors(t, found)
}
