package people_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestAGroupGrantsOnlyWhatTheClusterHas(t *testing.T) {
	all := &people.Known{VirtualClusters: []string{"default", "vision"}, Storages: []string{"datasets"}}
	vc := func(names ...string) *v1.GroupSpec {
		g := &v1.GroupSpec{Name: "g"}
		for _, n := range names {
			g.VirtualClusters = append(g.VirtualClusters, v1.VCGrant{Name: n})
		}
		return g
	}
	stores := func(names ...string) *v1.GroupSpec { return &v1.GroupSpec{Name: "g", Storages: names} }
	for name, test := range map[string]struct {
		known         *people.Known
		was, now      *v1.GroupSpec
		why, remedies string
	}{
		"what exists":                   {all, nil, vc("vision"), "", ""},
		"a typing mistake":              {all, nil, vc("default", "visoin"), `virtual clusters: the cluster has no virtual cluster "visoin"`, "did you mean vision?"},
		"another name":                  {all, vc("vision"), vc("vision", "nosuchvc"), `virtual clusters: the cluster has no virtual cluster "nosuchvc"`, "take one of: default, vision"},
		"a deleted one that it granted": {all, vc("gone"), vc("gone", "vision"), "", ""},
		"a storage":                     {all, stores("old"), stores("old", "dataset"), `storages: the cluster has no storage "dataset"`, "did you mean datasets?"},
		"taken away":                    {all, stores("old"), stores(), "", ""},
		"the first of its kind":         {&people.Known{VirtualClusters: []string{"default"}, Storages: []string{}}, nil, stores("data"), `storages: the cluster has no storage "data"`, "make the storage first"},
		"not known":                     {&people.Known{}, nil, vc("any"), "", ""},
	} {
		err := test.known.Check(test.was, test.now)
		if test.why == "" {
			assert.NoError(t, err, name)
			continue
		}
		require.EqualError(t, err, test.why, name)
		require.ErrorIs(t, err, people.ErrInvalid, name)
		assert.Equal(t, test.remedies, hint.Of(err), name)
	}
}

func TestGrantsOfDeletedThingsAreLeftOut(t *testing.T) {
	g := rules.Grants{VCs: map[string]rules.VC{"gone": {}, "vision": {SeeJobs: true}}, Storages: []string{"old", "datasets"}}
	all := &people.Known{VirtualClusters: []string{"default", "vision"}, Storages: []string{"datasets"}}
	less := all.Less(g)
	assert.Equal(t, map[string]rules.VC{"vision": {SeeJobs: true}}, less.VCs)
	assert.Equal(t, []string{"datasets"}, less.Storages)
	assert.Len(t, g.VCs, 2, "what others share stays")
	assert.Equal(t, []string{"old", "datasets"}, g.Storages)
	assert.Empty(t, (&people.Known{Storages: []string{}}).Less(g).Storages, "the last one was deleted")
	assert.Equal(t, g, (&people.Known{}).Less(g), "the cluster can't tell")
}
