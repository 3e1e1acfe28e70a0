package vc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
)

// machines returns a layout of machines from names in the form "NAME" or "NAME@RACK". They have 4 GPUs each, or only CPUs if
// the name begins with c.
func machines(names ...string) layout.Layout {
	l := layout.Layout{MachineSKU: map[string]layout.SKU{
		"a": {Mem: "64Gi", CPU: layout.CPU{VCore: 16}, GPU: &layout.GPU{Type: "a100", Count: 4}},
		"c": {Mem: "8Gi", CPU: layout.CPU{VCore: 5}},
	}}
	for i, name := range names {
		host, rack, _ := strings.Cut(name, "@")
		m := layout.Machine{Hostname: host, HostIP: fmt.Sprintf("10.0.0.%d", i+1), SKU: "a", Roles: []string{layout.RoleWorker}}
		if rack != "" {
			m.Labels = map[string]string{"rack": rack}
		}
		if host[0] == 'c' {
			m.SKU = "c"
		}
		l.MachineList = append(l.MachineList, m)
	}
	return l
}

func divided(t *testing.T, l layout.Layout, owned map[string]Definition) (cell.Config, error) {
	t.Helper()
	changes := map[string]*Definition{}
	for name, d := range owned {
		changes[name] = &d
	}
	text, err := Edit([]byte("kind: ServicesConfiguration\n"), changes)
	require.NoError(t, err)
	c, found := schedulerconfig.FromCluster(l, "services.yaml", text)
	return c, found.Err()
}

func TestVirtualClustersFitTheMachinesThatStay(t *testing.T) {
	one := func(pairs ...any) Definition { return *cells(pairs...) }
	for name, c := range map[string]struct {
		before, after []string
		have          map[string]Definition
		takeFrom      string
		want          map[string]string
	}{
		"a machine that no one owns": {[]string{"a1", "a2"}, []string{"a1"}, map[string]Definition{"vision": one("a-NODE", 1)}, "", nil},
		"the only owner gives": {[]string{"a1", "a2"}, []string{"a1"}, map[string]Definition{"vision": one("a-NODE", 2), "nlp": {}}, "",
			map[string]string{"vision": "1 x a-NODE"}},
		"default gives before others": {[]string{"a1", "a2", "a3"}, []string{"a1", "a2"}, map[string]Definition{"default": one("a-NODE", 1), "vision": one("a-NODE", 2)}, "",
			map[string]string{"default": "nothing"}},
		"the one that is named gives": {[]string{"a1", "a2", "a3"}, []string{"a1", "a2"}, map[string]Definition{"default": one("a-NODE", 1), "vision": one("a-NODE", 2)}, "vision",
			map[string]string{"vision": "1 x a-NODE"}},
		"the last of a type takes all of it": {[]string{"a1", "c1"}, []string{"a1"}, map[string]Definition{"nlp": one("a-NODE", 1, "c-NODE.CPU", 2), "vision": one("c-NODE.CPU", 2)}, "",
			map[string]string{"nlp": "1 x a-NODE", "vision": "nothing"}},
		"a larger cell is split for a smaller one": {[]string{"a1", "a2"}, []string{"a1"}, map[string]Definition{"default": one("a-NODE", 1), "vision": one("a-NODE.a100", 2)}, "",
			map[string]string{"default": "2 x a-NODE.a100"}},
		"a rack that is smaller": {[]string{"a1@r", "a2@r", "a3@r"}, []string{"a1@r", "a2@r"}, map[string]Definition{"vision": one("a-RACK-3", 1)}, "",
			map[string]string{"vision": "1 x a-RACK-2"}},
		"machines of a rack that is smaller": {[]string{"a1@r", "a2@r", "a3@r"}, []string{"a1@r", "a2@r"}, map[string]Definition{"default": one("a-RACK-3.a-NODE", 1), "vision": one("a-RACK-3.a-NODE", 2)}, "",
			map[string]string{"default": "nothing", "vision": "2 x a-RACK-2.a-NODE"}},
		"one rack of two": {[]string{"a1@r", "a2@r", "a3@s", "a4@s"}, []string{"a1@r", "a3@s", "a4@s"}, map[string]Definition{"default": one("a-RACK-2", 1), "vision": one("a-RACK-2", 1)}, "",
			map[string]string{"default": "1 x a-RACK-1"}},
		"a rack that is gone and one that is smaller": {[]string{"a1@r", "a2@r", "a3@s", "a4@s"}, []string{"a3@s"}, map[string]Definition{"default": one("a-RACK-2", 1), "vision": one("a-RACK-2", 1)}, "",
			map[string]string{"default": "nothing", "vision": "1 x a-RACK-1"}},
		"a rack that grows": {[]string{"a1@r", "a2@s"}, []string{"a1@r", "a2@s", "a3@s"}, map[string]Definition{"nlp": one("a-RACK-1", 1), "vision": one("a-RACK-1", 1)}, "",
			map[string]string{"nlp": "1 x a-RACK-2"}},
		"hardware that stays": {[]string{"a1"}, []string{"a1"}, map[string]Definition{"vision": one("a-NODE", 1)}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := divided(t, machines(c.before...), c.have)
			require.NoError(t, err)
			after, _ := divided(t, machines(c.after...), c.have)
			had := map[string]string{}
			for name, d := range c.have {
				had[name] = d.String()
			}
			changes, err := FitHardware(c.have, before, after, c.takeFrom, false)
			require.NoError(t, err)
			got := map[string]string{}
			settled := maps.Clone(c.have)
			for name, d := range changes {
				got[name], settled[name] = d.String(), *d
			}
			if c.want == nil {
				c.want = map[string]string{}
			}
			assert.Equal(t, c.want, got)
			_, err = divided(t, machines(c.after...), settled)
			require.NoError(t, err, "the scheduler takes it")
			for name, d := range c.have {
				assert.Equal(t, had[name], d.String(), "what it was given stays as it was")
			}
		})
	}
}

func TestWhoGivesCellsIsAskedIfSeveralCould(t *testing.T) {
	have := map[string]Definition{"nlp": *cells("a-NODE", 1), "vision": *cells("a-NODE", 2)}
	before, err := divided(t, machines("a1", "a2", "a3"), have)
	require.NoError(t, err)
	after, _ := divided(t, machines("a1", "a2"), have)
	_, err = FitHardware(have, before, after, "", false)
	require.EqualError(t, err, "1 x a-NODE fewer than virtual clusters own: nlp (1 x a-NODE) and vision (2 x a-NODE) own them")
	owners, ok := errors.AsType[*OwnersError](err)
	require.True(t, ok)
	assert.Equal(t, []string{"nlp", "vision"}, owners.Owners)
	assert.Equal(t, "a-NODE", owners.CellType)
	_, err = FitHardware(have, before, after, "visoin", false)
	require.EqualError(t, err, "there is no virtual cluster visoin")
	changes, err := FitHardware(have, before, after, "", true)
	require.NoError(t, err)
	assert.Equal(t, []string{"nlp: nothing, formerly 1 x a-NODE"}, Difference(have, changes))
	assert.Equal(t, []string{"nlp"}, slices.Collect(maps.Keys(changes)))
}
