package doctor

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachCheckHasAPlaceInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/doctor.md")
	require.NoError(t, err)
	docs := string(text)
	known := map[string]bool{}
	for _, c := range Checks() {
		assert.False(t, known[c.ID], "two checks are called %s", c.ID)
		known[c.ID] = true
		_, section, there := strings.Cut(docs, "\n### "+c.ID+"\n")
		if !assert.True(t, there, "docs/doctor.md has no heading ### %s", c.ID) {
			continue
		}
		section, _, _ = strings.Cut(section, "\n##")
		assert.Contains(t, section, "**"+c.Title+"**")
		assert.Contains(t, section, "Checks "+c.Examines+".", "of %s", c.ID)
		paragraphs := strings.Split(strings.TrimSpace(section), "\n\n")
		assert.Greater(t, len(paragraphs), 2, "docs/doctor.md doesn't say what to do about %s", c.ID)
	}
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z0-9-]+)$`).FindAllStringSubmatch(docs, -1) {
		assert.True(t, known[m[1]], "docs/doctor.md describes %s, which is no check", m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(docs, -1) { // the contents lead there
		known[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([a-z0-9-]+)\)`).FindAllStringSubmatch(docs, -1) {
		assert.True(t, known[m[1]], "docs/doctor.md leads to #%s, which is no check", m[1])
	}
}

func TestChecksAreWhole(t *testing.T) {
	for _, c := range Checks() {
		assert.Contains(t, Groups(), c.Group, c.ID)
		assert.NotEmpty(t, c.Title, c.ID)
		assert.NotEmpty(t, c.Examines, c.ID)
		assert.NotNil(t, c.Run, c.ID)
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, c.ID)
	}
}

func TestChecksAreSelectedByIDAndGroup(t *testing.T) {
	ids := func(only, without []string) (out []string) {
		chosen, unknown := Select(Checks(), only, without)
		assert.Empty(t, unknown)
		for _, c := range chosen {
			out = append(out, c.ID)
		}
		return out
	}
	assert.Equal(t, []string{"clocks"}, ids([]string{"clocks"}, []string{"machines-reachable"}))
	assert.Equal(t, []string{"machines-reachable", "clocks", "api-server", "pods-start", "dns"}, ids([]string{"dns", "clocks"}, nil), "and whether what they need is there")
	network := ids([]string{"network"}, []string{"mtu"})
	assert.Contains(t, network, "dns")
	assert.NotContains(t, network, "mtu")
	assert.Len(t, ids(nil, nil), len(Checks()))
	_, unknown := Select(Checks(), []string{"dsn"}, []string{"gpu"})
	assert.Equal(t, []string{"dsn", "gpu"}, unknown)
	assert.True(t, slices.IsSortedFunc(Checks(), func(a, b *Check) int { return slices.Index(Groups(), a.Group) - slices.Index(Groups(), b.Group) }))
}
