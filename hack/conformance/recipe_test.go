package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle/build"
)

func TestTheTestsAreOfTheBundlesKubernetes(t *testing.T) {
	t.Chdir("../..")
	recipe, err := withTests(build.Default())
	require.NoError(t, err)
	versions, err := build.Versions()
	require.NoError(t, err)
	modules := map[string]build.Module{}
	for _, m := range recipe.Modules {
		assert.NotContains(t, modules, m.Name)
		modules[m.Name] = m
	}
	assert.Equal(t, versions["kubernetes"], modules["conformance-kubernetes"].Version, "change hack/conformance/modules/kubernetes/go.mod, too")
}

func TestEachImageHasANameAndProgramsOfItsOwn(t *testing.T) {
	t.Chdir("../..")
	recipe, err := withTests(build.Default())
	require.NoError(t, err)
	programs, names, refs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range recipe.Modules {
		for _, p := range m.Programs {
			assert.False(t, programs[p.Name], p.Name)
			programs[p.Name] = true
		}
	}
	tests := 0
	for _, img := range recipe.Images {
		assert.False(t, names[img.Name], img.Name)
		assert.False(t, refs[img.Ref], img.Ref)
		names[img.Name], refs[img.Ref] = true, true
		for _, f := range img.Files {
			assert.True(t, programs[f.Program], "%s: %s", img.Name, f.Program)
		}
		if strings.HasPrefix(img.Ref, registry) {
			tests++
			assert.Empty(t, img.Roles, "the pods of the tests run on all machines")
		}
	}
	assert.Positive(t, tests)
}
