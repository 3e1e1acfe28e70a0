package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got, "run the test with -update, if the change is meant")
}

func text(findings strictyaml.Findings) string {
	var b strings.Builder
	_ = findings.Write(&b)
	return b.String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func TestParseTakesHiveDsConfiguration(t *testing.T) {
	c, findings := Parse("good.yaml", read(t, "good.yaml"))
	require.Empty(t, text(findings))
	names := func() (out []string) {
		for _, ty := range c.Types {
			out = append(out, ty.Name)
		}
		return out
	}
	assert.Equal(t, []string{"ROW", "RACK", "V-NODE", "V-SOCKET", "K-NODE"}, names(), "the order of the file")
	assert.Equal(t, cell.Type{Name: "V-NODE", Child: "V-SOCKET", Children: 2, Node: true}, c.Types[2])
	require.Len(t, c.Physical, 4)
	assert.Equal(t, cell.Physical{Type: "K-NODE", Address: "10", Children: []cell.Physical{{Address: "8", Pinned: "one"}, {Address: "9"}}}, c.Physical[3])
	assert.Nil(t, c.Physical[1].Children)
	assert.Equal(t, []cell.VirtualCluster{
		{Name: "alpha", Cells: []cell.Virtual{{Type: "ROW.RACK.V-NODE.V-SOCKET", Count: 1}}, Pinned: []string{"one"}},
		{Name: "beta", Cells: []cell.Virtual{{Type: "K-NODE", Count: 1}, {Type: "ROW.V-NODE", Count: 2}},
			Quota: cell.Quota{PerUser: 8, PerGroup: 16, Users: map[string]int{"alice": 16}, Groups: map[string]int{"nlp": 32}}, Policy: "fewer-kills"},
	}, c.VirtualClusters, "in order of their names")
}

func TestParseReportsEverythingAtOnce(t *testing.T) {
	_, findings := Parse("bad.yaml", read(t, "bad.yaml"))
	require.Error(t, findings.Err())
	golden(t, "bad.txt", text(findings))
}

func TestParseOfTheWrongForm(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":              {"", "the file is empty"},
		"broken YAML":          {"a: [", "yaml/syntax"},
		"another file":         {"apiVersion: v1\nkind: Pod\n", "there is no physicalCluster"},
		"a number in words":    {"physicalCluster:\n  cellTypes:\n    NODE: {childCellNumber: two}\n", "expected a whole number, found text"},
		"cells that are a map": {"physicalCluster:\n  physicalCells: {a: 1}\n", "expected a list, found a map"},
		"a type twice":         {"physicalCluster:\n  cellTypes:\n    A: {}\n    A: {}\n", "the key is already set on line 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, findings := Parse("f.yaml", []byte(tt.text))
			require.Error(t, findings.Err())
			assert.Contains(t, text(findings), tt.want)
		})
	}
}

func TestParseWarns(t *testing.T) {
	const head = "physicalCluster:\n  cellTypes:\n    NODE: {childCellType: GPU, childCellNumber: 2, isNodeLevel: true}\n"
	const tail = "virtualClusters: {a: {virtualCells: [{cellType: NODE, cellNumber: 1}]}}\n"
	tests := map[string]struct{ text, want string }{
		"about a misspelt key": {head + "  physicalCells: [{cellType: NODE, celAddress: n}]\n" + tail,
			"f.yaml:4:48: warning: physicalCluster.physicalCells[0].celAddress: there is no key \"celAddress\" here; it has no effect [scheduler/unknown-key]\n  -> did you mean \"cellAddress\"?"},
		"about nodes without names":        {head + "  physicalCells: [{cellType: NODE}]\n" + tail, "a node has no cellAddress"},
		"about a type that nothing has":    {head + "    RACK: {childCellType: NODE, childCellNumber: 2}\n  physicalCells: [{cellType: NODE, cellAddress: n}]\n" + tail, `no physical cell is or has a cell of type "RACK"`},
		"about a pinned cell of nobody":    {head + "  physicalCells: [{cellType: NODE, cellAddress: n, pinnedCellId: p}]\n" + tail, `the pinned cell "p" belongs to no virtual cluster`},
		"about no virtual clusters":        {head + "  physicalCells: [{cellType: NODE, cellAddress: n}]\n", "there are no virtualClusters"},
		"about nodes that are not listed":  {head + "    RACK: {childCellType: NODE, childCellNumber: 2}\n  physicalCells: [{cellType: RACK}]\n", "the nodes of a cell are not listed"},
		"about no hardware":                {"physicalCluster: {}\nvirtualClusters: {a: {}}\n", "there are no physicalCells"},
		"about a key of a virtual cluster": {head + "  physicalCells: [{cellType: NODE, cellAddress: n}]\nvirtualClusters: {a: {quota: {perUsr: 1}}}\n", `virtualClusters.a.quota.perUsr: there is no key "perUsr"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, findings := Parse("f.yaml", []byte(tt.text))
			require.NoError(t, findings.Err())
			assert.Contains(t, text(findings), tt.want)
		})
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	want, findings := Parse("good.yaml", read(t, "good.yaml"))
	require.NoError(t, findings.Err())
	out, err := Encode(want)
	require.NoError(t, err)
	golden(t, "encoded.yaml", string(out))
	got, findings := Parse("encoded.yaml", out)
	require.NoError(t, findings.Err())
	assert.Equal(t, want, got)
}

func TestEncodeOfNothing(t *testing.T) {
	out, err := Encode(cell.Config{})
	require.NoError(t, err)
	_, findings := Parse("f.yaml", out)
	require.NoError(t, findings.Err())
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"good.yaml", "bad.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<13 {
			t.Skip("longer inputs only slow the search down")
		}
		c, findings := Parse("f.yaml", data)
		if findings.Err() != nil {
			return
		}
		_, err := c.Expand()
		require.NoError(t, err)
		out, err := Encode(c)
		require.NoError(t, err)
		again, findings := Parse("f.yaml", out)
		require.NoError(t, findings.Err(), "%s", out)
		require.Equal(t, c, again)
	})
}
