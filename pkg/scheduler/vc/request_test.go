package vc

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

func number(n int) *int { return &n }

func quota(d *Definition, q Quota) *Definition {
	d.Quota = q
	return d
}

func TestARequestChangesWhatItNames(t *testing.T) {
	have := map[string]Definition{
		"a": {VirtualCells: []Cells{{"x", 2}, {"y", 1}}, PinnedCells: []Pinned{{"p"}}, Quota: Quota{PerUser: 4, Users: map[string]int{"ann": 8}}},
		"b": *cells("x", 3),
	}
	for name, c := range map[string]struct {
		request Request
		want    map[string]*Definition
	}{
		"cells of one type": {Request{Name: "a", Cells: []Cells{{"x", 5}}}, map[string]*Definition{
			"a": {VirtualCells: []Cells{{"x", 5}, {"y", 1}}, PinnedCells: []Pinned{{"p"}}, Quota: Quota{PerUser: 4, Users: map[string]int{"ann": 8}}},
		}},
		"a pinned cell more and one less": {Request{Name: "a", Pin: []string{"q"}, Unpin: []string{"p"}}, map[string]*Definition{
			"a": {VirtualCells: []Cells{{"x", 2}, {"y", 1}}, PinnedCells: []Pinned{{"q"}}, Quota: Quota{PerUser: 4, Users: map[string]int{"ann": 8}}},
		}},
		"quotas": {Request{Name: "b", PerUser: number(1), PerGroup: number(2), Users: map[string]*int{"bob": number(3)}, Groups: map[string]*int{"g": number(4)}}, map[string]*Definition{
			"b": quota(cells("x", 3), Quota{1, 2, map[string]int{"bob": 3}, map[string]int{"g": 4}}),
		}},
		"no quota any more": {Request{Name: "a", PerUser: number(0), Users: map[string]*int{"ann": nil}}, map[string]*Definition{
			"a": {VirtualCells: []Cells{{"x", 2}, {"y", 1}}, PinnedCells: []Pinned{{"p"}}, Quota: Quota{Users: map[string]int{}}},
		}},
		"a new one":                         {Request{Name: "c", Cells: []Cells{{"x", 1}}}, map[string]*Definition{"c": cells("x", 1)}},
		"a whole definition":                {Request{Name: "a", Define: cells("z", 1), Cells: []Cells{{"x", 1}}}, map[string]*Definition{"a": cells("z", 1, "x", 1)}},
		"one gives what another gets":       {Request{Name: "c", Cells: []Cells{{"x", 2}}, TakeFrom: "b"}, map[string]*Definition{"c": cells("x", 2), "b": cells("x", 1)}},
		"one gives all":                     {Request{Name: "c", Cells: []Cells{{"x", 3}}, TakeFrom: "b"}, map[string]*Definition{"c": cells("x", 3), "b": {VirtualCells: []Cells{}}}},
		"one gets what another loses":       {Request{Name: "a", Cells: []Cells{{"y", 0}}, TakeFrom: "b"}, map[string]*Definition{"b": cells("x", 3, "y", 1), "a": {VirtualCells: []Cells{{"x", 2}}, PinnedCells: []Pinned{{"p"}}, Quota: have["a"].Quota}}},
		"one that ends":                     {Request{Name: "a", Delete: true}, map[string]*Definition{"a": nil}},
		"one that ends, and its cells move": {Request{Name: "a", Delete: true, TakeFrom: "b"}, map[string]*Definition{"a": nil, "b": cells("x", 5, "y", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.request.Changes(have, cell.Config{})
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			assert.Equal(t, 8, have["a"].Quota.Users["ann"], "what there was is not touched")
			assert.Equal(t, 3, have["b"].VirtualCells[0].CellNumber)
		})
	}
}

func TestARequestThatCantBeMetSaysWhy(t *testing.T) {
	have := map[string]Definition{"vision": *cells("x", 2), "nlp": {}}
	for says, r := range map[string]Request{
		"there is no virtual cluster visoin":                          {Name: "visoin", Delete: true},
		"vision has no pinned cell p":                                 {Name: "vision", Unpin: []string{"p"}},
		"there is no virtual cluster c, and a new one must own cells": {Name: "c", PerUser: number(1)},
		"vision has fewer than the requested 3 x":                     {Name: "c", Cells: []Cells{{"x", 3}}, TakeFrom: "vision"},
		"vision has fewer than the requested 1 y":                     {Name: "c", Cells: []Cells{{"y", 1}}, TakeFrom: "vision"},
		"there is no virtual cluster nobody":                          {Name: "nlp", Cells: []Cells{{"x", 1}}, TakeFrom: "nobody"},
		"there is no virtual cluster nlp":                             {Name: "nlp", Cells: []Cells{{"x", 1}}, TakeFrom: "nlp"},
	} {
		_, err := r.Changes(have, cell.Config{})
		require.ErrorContains(t, err, says)
		assert.NotEmpty(t, hint.Of(err))
	}
	_, err := (&Request{Name: "c", Cells: []Cells{{"a", 1}}, TakeFrom: "vision"}).Changes(have, racked())
	require.ErrorContains(t, err, "there is no type of cell a")
	assert.Equal(t, "the types are: rack, rack.node, rack.A100, old, old.V100", hint.Of(err))
	_, err = (&Request{Name: "visoin", Delete: true}).Changes(have, cell.Config{})
	assert.Equal(t, `did you mean "vision"?`, hint.Of(err))
}

// Without definitions, the default virtual cluster owns all cells. The first change must not take all its cells.
func TestTheFirstVirtualClusterTakesItsCellsFromTheDefaultOne(t *testing.T) {
	effective := cell.Config{VirtualClusters: []cell.VirtualCluster{{Name: DefaultName, Cells: []cell.Virtual{{Type: "x", Count: 4}}, Quota: cell.Quota{PerUser: 2}}}}
	requests := []Request{{Name: "a", Cells: []Cells{{"x", 1}}}, {Name: "b", Cells: []Cells{{"x", 2}}}}
	FromDefault(requests, nil)
	got, err := requests[0].Changes(nil, effective)
	require.NoError(t, err)
	assert.Equal(t, map[string]*Definition{"a": cells("x", 1), DefaultName: quota(cells("x", 3), Quota{PerUser: 2})}, got)
	assert.Equal(t, DefaultName, requests[1].TakeFrom)

	own := []Request{{Name: DefaultName, Cells: []Cells{{"x", 1}}}}
	FromDefault(own, nil)
	got, err = own[0].Changes(nil, effective)
	require.NoError(t, err)
	assert.Equal(t, map[string]*Definition{DefaultName: quota(cells("x", 1), Quota{PerUser: 2})}, got)

	later := []Request{{Name: "a"}}
	FromDefault(later, map[string]Definition{"a": {}})
	assert.Empty(t, later[0].TakeFrom, "it is written down already")
}

// racked returns a configuration with two racks of four nodes with eight GPUs each, and a machine of another kind.
func racked() cell.Config {
	return cell.Config{
		Types: []cell.Type{
			{Name: "rack", Child: "node", Children: 4}, {Name: "node", Child: "A100", Children: 8, Node: true}, {Name: "old", Child: "V100", Children: 2, Node: true},
		},
		Physical: []cell.Physical{{Type: "rack"}, {Type: "rack"}, {Type: "old"}},
	}
}

func TestAGiverSplitsLargerCells(t *testing.T) {
	assert.Equal(t, []string{"rack", "rack.node", "rack.A100", "old", "old.V100"}, CellTypes(racked()))
	for name, c := range map[string]struct {
		owns Definition
		asks []Cells
		want map[string]*Definition
	}{
		"a rack for a node":               {*cells("rack", 2), []Cells{{"rack.node", 1}}, map[string]*Definition{"a": cells("rack.node", 1), "b": cells("rack", 1, "rack.node", 3)}},
		"a node that is written alone":    {*cells("rack", 2), []Cells{{"node", 5}}, map[string]*Definition{"a": cells("rack.node", 5), "b": cells("rack.node", 3)}},
		"a node before a rack":            {*cells("rack", 1, "rack.node", 2), []Cells{{"rack.node", 2}}, map[string]*Definition{"a": cells("rack.node", 2), "b": cells("rack", 1)}},
		"a rack down to its GPUs":         {*cells("rack", 1), []Cells{{"rack.A100", 3}}, map[string]*Definition{"a": cells("rack.A100", 3), "b": cells("rack.node", 3, "rack.A100", 5)}},
		"a path with all that is between": {*cells("rack", 1), []Cells{{"rack.node.A100", 8}}, map[string]*Definition{"a": cells("rack.node.A100", 8), "b": cells("rack.node", 3)}},
		"another kind":                    {*cells("rack", 1, "old", 1), []Cells{{"V100", 1}}, map[string]*Definition{"a": cells("old.V100", 1), "b": cells("rack", 1, "old.V100", 1)}},
		"more than there is":              {*cells("rack", 1), []Cells{{"rack.node", 5}}, nil},
		"smaller ones than are asked for": {*cells("rack.node", 4), []Cells{{"rack", 1}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Name: "a", Cells: c.asks, TakeFrom: "b"}
			got, err := r.Changes(map[string]Definition{"b": c.owns}, racked())
			if c.want == nil {
				require.ErrorContains(t, err, "b has fewer than the")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}
