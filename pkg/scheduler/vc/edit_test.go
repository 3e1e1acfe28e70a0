package vc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

const file = `apiVersion: paictl.openpai.org/v1
kind: ServicesConfiguration
# The cluster.
cluster:
  common: {cluster-id: lab,   data-path: /data} # two blanks stay

scheduler:
  replicas: 2
  virtualClusters:
    # The vision team.
    vision:
      virtualCells:
        # Their old machines.
        - {cellType: 4x-v100,  cellNumber: 1} # bought in 2019
        - {cellType: 8x-a100, cellNumber: 2}
      quota: {perUser: 8, users: {alice: 16}}

    # The language team.
    nlp:
      virtualCells:
      - cellType: 8x-a100
        cellNumber: 3 # until May
      pinnedCells: [{pinnedCellId: special}]

## Everything below is documentation.
# grafana:
#   enabled: true
`

func cells(pairs ...any) *Definition {
	d := &Definition{}
	for i := 0; i < len(pairs); i += 2 {
		d.VirtualCells = append(d.VirtualCells, Cells{pairs[i].(string), pairs[i+1].(int)})
	}
	return d
}

func TestOnlyTheLinesOfAVirtualClusterChange(t *testing.T) {
	quota := func(d *Definition, q Quota) *Definition { d.Quota = q; return d }
	for name, c := range map[string]struct {
		text, vc string
		to       *Definition
		want     []string // old and new pieces of the text
	}{
		"a number": {file, "vision", quota(cells("4x-v100", 1, "8x-a100", 5), Quota{PerUser: 8, Users: map[string]int{"alice": 16}}), []string{
			"        - {cellType: 4x-v100,  cellNumber: 1} # bought in 2019\n        - {cellType: 8x-a100, cellNumber: 2}\n",
			"        - {cellType: 4x-v100, cellNumber: 1} # bought in 2019\n        - {cellType: 8x-a100, cellNumber: 5}\n",
		}},
		"a type less, and no quota": {file, "vision", cells("4x-v100", 1), []string{
			"        - {cellType: 4x-v100,  cellNumber: 1} # bought in 2019\n        - {cellType: 8x-a100, cellNumber: 2}\n      quota: {perUser: 8, users: {alice: 16}}\n",
			"        - {cellType: 4x-v100, cellNumber: 1} # bought in 2019\n",
		}},
		"cells in block style keep their comments": {file, "nlp", cells("8x-a100", 4), []string{
			"      - cellType: 8x-a100\n        cellNumber: 3 # until May\n      pinnedCells: [{pinnedCellId: special}]\n",
			"        - cellType: 8x-a100\n          cellNumber: 4 # until May\n",
		}},
		"a new one comes last": {file, "audio", quota(cells("4x-v100", 1), Quota{PerUser: 2}), []string{
			"      pinnedCells: [{pinnedCellId: special}]\n",
			"      pinnedCells: [{pinnedCellId: special}]\n    audio:\n      virtualCells:\n        - {cellType: 4x-v100, cellNumber: 1}\n      quota:\n        perUser: 2\n",
		}},
		"one that goes takes its comment along": {file, "vision", nil, []string{
			file[strings.Index(file, "    # The vision team."):strings.Index(file, "\n    # The language team.")], "",
		}},
		"the last one too": {file, "nlp", nil, []string{
			file[strings.Index(file, "    # The language team."):strings.Index(file, "\n## Everything")], "",
		}},
		"a name that is no word": {file, "8: on", cells("a", 1), []string{
			"      pinnedCells: [{pinnedCellId: special}]\n",
			"      pinnedCells: [{pinnedCellId: special}]\n    '8: on':\n      virtualCells:\n        - {cellType: a, cellNumber: 1}\n",
		}},
		"what isn't there can go": {file, "audio", nil, nil},
		"no section yet": {"apiVersion: x\ncluster: {a: b}\n## Documentation.\n# scheduler:\n#   replicas: 1\n", "a", cells("x", 1), []string{
			"cluster: {a: b}\n", "cluster: {a: b}\n\nscheduler:\n  virtualClusters:\n    a:\n      virtualCells:\n        - {cellType: x, cellNumber: 1}\n",
		}},
		"no line break at the end": {"cluster: {a: b}", "a", cells("x", 1), []string{
			"cluster: {a: b}", "cluster: {a: b}\n\nscheduler:\n  virtualClusters:\n    a:\n      virtualCells:\n        - {cellType: x, cellNumber: 1}\n",
		}},
		"an empty section": {"scheduler:\ncluster: {a: b}\n", "a", cells("x", 1), []string{
			"scheduler:\n", "scheduler:\n  virtualClusters:\n    a:\n      virtualCells:\n        - {cellType: x, cellNumber: 1}\n",
		}},
		"a section of other settings": {"scheduler:\n  replicas: 2 # two\n\ncluster: {a: b}\n", "a", cells("x", 1), []string{
			"  replicas: 2 # two\n", "  replicas: 2 # two\n  virtualClusters:\n    a:\n      virtualCells:\n        - {cellType: x, cellNumber: 1}\n",
		}},
		"no virtual cluster yet": {"scheduler:\n  virtualClusters: {}\n  replicas: 2\n", "a", cells("x", 1), []string{
			"  virtualClusters: {}\n", "  virtualClusters:\n    a:\n      virtualCells:\n        - {cellType: x, cellNumber: 1}\n",
		}},
		"all in one line": {"scheduler: {replicas: 2, virtualClusters: {a: {virtualCells: [{cellType: x, cellNumber: 1}]}}}\nother: 1\n", "a", cells("x", 2), []string{
			"cellNumber: 1", "cellNumber: 2",
		}},
		"virtual clusters in one line": {"scheduler:\n  virtualClusters: {a: {virtualCells: [{cellType: x, cellNumber: 1}]}, b: {}}\n", "b", nil, []string{
			", b: {}", "",
		}},
		"the only one": {"scheduler:\n  virtualClusters:\n    a: {}\n  replicas: 1\n", "a", nil, []string{
			"  virtualClusters:\n    a: {}\n", "  virtualClusters: {}\n",
		}},
		"lines that end as on Windows": {"scheduler:\r\n  virtualClusters:\r\n    a: {virtualCells: [{cellType: x, cellNumber: 1}]}\r\nother: 1\r\n", "a", cells("x", 2), []string{
			"    a: {virtualCells: [{cellType: x, cellNumber: 1}]}\r\n", "    a: {virtualCells: [{cellType: x, cellNumber: 2}]}\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.text
			if c.want != nil {
				require.Contains(t, c.text, c.want[0])
				want = strings.Replace(c.text, c.want[0], c.want[1], 1)
			}
			got, err := Edit([]byte(c.text), map[string]*Definition{c.vc: c.to})
			require.NoError(t, err, hint.Of(err))
			assert.Equal(t, want, string(got))
		})
	}
}

func TestSeveralVirtualClustersChangeAtOnce(t *testing.T) {
	got, err := Edit([]byte(file), map[string]*Definition{"vision": nil, "nlp": cells("8x-a100", 1), "audio": cells("8x-a100", 4)})
	require.NoError(t, err)
	all, err := Read(got)
	require.NoError(t, err)
	assert.Equal(t, map[string]Definition{"nlp": *cells("8x-a100", 1), "audio": *cells("8x-a100", 4)}, all)
	assert.Contains(t, string(got), "# two blanks stay\n")
}

func TestWhatOnlyAPersonCanWriteIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a file in one line":            "{scheduler: {virtualClusters: {a: {}}}}\n",
		"one that others refer to":      "scheduler:\n  virtualClusters:\n    a: &x {virtualCells: [{cellType: x, cellNumber: 1}]}\n    b: *x\n",
		"merged from somewhere":         "base: &x {a: {virtualCells: [{cellType: x, cellNumber: 1}]}}\nscheduler:\n  virtualClusters:\n    <<: *x\n    b: {}\n",
		"no YAML":                       "scheduler: [\n",
		"a list in the section's place": "- a\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Edit([]byte(text), map[string]*Definition{"a": nil})
			if name == "merged from somewhere" {
				_, err = Edit([]byte(text), map[string]*Definition{"b": nil, "a": nil})
			}
			require.Error(t, err)
			assert.Contains(t, hint.Of(err), "config pull")
		})
	}
}

func TestCellsOfATypeAreSetAndTakenAway(t *testing.T) {
	d := cells("a", 1, "b", 2)
	d.SetCells("b", 3)
	d.SetCells("c", 4)
	d.SetCells("a", 0)
	d.SetCells("nothing", 0)
	assert.Equal(t, cells("b", 3, "c", 4), d)
	assert.Equal(t, 3, d.Cells("b"))
	assert.Zero(t, d.Cells("a"))
	assert.Equal(t, "3 x b, 4 x c", d.String())
	twice := cells("a", 1, "b", 1, "a", 2)
	twice.SetCells("a", 5)
	assert.Equal(t, cells("a", 5, "b", 1), twice, "a type that stands there twice is one")
}

func TestAFileHoldsOneVirtualClusterOrSeveral(t *testing.T) {
	one, err := ParseFile("f", []byte("virtualCells: [{cellType: a, cellNumber: 1}]\nquota: {perUser: 2}\n"))
	require.NoError(t, err)
	want := cells("a", 1)
	want.Quota.PerUser = 2
	assert.Equal(t, map[string]Definition{"": *want}, one)
	several, err := ParseFile("f", []byte("virtualClusters:\n  x: {virtualCells: [{cellType: a, cellNumber: 1}]}\n  y: {}\n"))
	require.NoError(t, err)
	assert.Len(t, several, 2)
	for text, says := range map[string]string{
		"virtualCell: []\n":                     "f:1:1: virtualCell",
		"virtualClusters: {a: {quota: {x: 1}}}": "virtualClusters.a.quota.x",
		"quota: {perUser: many}\n":              "f:1:18: quota.perUser: expected a whole number",
		"":                                      "the file is empty",
	} {
		_, err := ParseFile("f", []byte(text))
		require.ErrorContains(t, err, says)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(file), "vision", "8x-a100", 3)
	f.Add([]byte("scheduler: {virtualClusters: {a: {}}}\n"), "a", "x", 0)
	f.Fuzz(func(t *testing.T, text []byte, name, cellType string, n int) {
		for _, d := range []*Definition{cells(cellType, n), nil} {
			got, err := Edit(text, map[string]*Definition{name: d})
			if err != nil {
				continue
			}
			all, err := Read(got)
			require.NoError(t, err)
			_, there := all[name]
			require.Equal(t, d != nil, there)
		}
	})
}
