package layout

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCardsOfThePCITableAreSplitAsOneCardIs(t *testing.T) {
	for device, memory := range map[string]int{
		"20b0": 40, "20b2": 80, "20b5": 80, "20b7": 24, "20f1": 40, "2321": 94, "2330": 80, "2331": 80, "2335": 141, "233b": 141, "2342": 96, "2348": 144, "2901": 180,
	} {
		model := PCIModel(pciNVIDIA, device)
		cards := migCardsOf(model)
		require.Len(t, cards, 1, "%s (%s)", model, device)
		last := cards[0].profiles[len(cards[0].profiles)-1]
		assert.True(t, strings.HasSuffix(last.Name, fmt.Sprintf(".%dgb", memory)), "%s: %s", model, last.Name)
		// NVIDIA's names contain the memory size in eighths of the whole memory, rounded.
		for _, p := range cards[0].profiles {
			var slicesOf, gib int
			_, err := fmt.Sscanf(p.Name, "%dg.%dgb", &slicesOf, &gib)
			require.NoError(t, err)
			is := func(eighths int) bool { return gib == int(math.Round(float64(memory*eighths)/8)) }
			assert.True(t, is(1) || is(2) || is(4) || is(8), "%s %s", model, p.Name)
			assert.LessOrEqual(t, slicesOf*p.Instances, 7, "%s %s", model, p.Name)
			assert.LessOrEqual(t, gib*p.Instances, memory+7, "%s %s: names are rounded up", model, p.Name)
		}
	}
	for id, model := range pciModels() {
		device, nvidia := strings.CutPrefix(id, pciNVIDIA+":")
		can := slices.Contains([]string{"20b0", "20b2", "20b5", "20b7", "20f1", "2321", "2330", "2331", "2335", "233b", "2342", "2348", "2901"}, device)
		assert.Equal(t, nvidia && can, len(MIGProfiles(model)) > 0, "%s %s", id, model)
	}
}

func TestInstancesOfAProfile(t *testing.T) {
	for _, tt := range []struct {
		model, profile string
		want           int
		err            string
	}{
		{"NVIDIA-A100-SXM4-40GB", "1g.10gb", 4, ""},
		{"NVIDIA-A100-SXM4-80GB", "1g.10gb", 7, ""},
		{"nvidia a100 80gb pcie", "3g.40gb", 2, ""},
		{"A100", "1g.5gb", 7, ""}, // only one of the two cards has this profile
		{"A100", "7g.80gb", 1, ""},
		{"A100", "1g.10gb", 0, "write the model with its memory"},
		{"H100", "1g.10gb", 7, ""},
		{"H100", "1g.12gb", 7, ""}, // two cards have this profile, with the same number of instances
		{"NVIDIA-H100-NVL", "3g.47gb", 2, ""},
		{"NVIDIA-H100-NVL", "1g.10gb", 0, `NVIDIA-H100-NVL has no profile "1g.10gb"`},
		{"NVIDIA-H100-80GB-HBM3", "1G.10GB", 0, "has no profile"},
		{"NVIDIA-H100-80GB-HBM3", "1g.10gb+me", 0, "has no profile"},
		{"NVIDIA-GH200-480GB", "3g.48gb", 2, ""},
		{"NVIDIA-GH200-144G-HBM3e", "2g.36gb", 3, ""},
		{"NVIDIA-H200", "1g.18gb", 7, ""},
		{"NVIDIA-B200", "2g.45gb", 3, ""},
		{"NVIDIA-A30", "2g.12gb", 2, ""},
		{"Tesla-V100-SXM2-32GB", "1g.10gb", 0, "can't split a Tesla-V100-SXM2-32GB"},
		{"", "1g.10gb", 0, "can't split"},
	} {
		n, err := MIGInstances(tt.model, tt.profile)
		assert.Equal(t, tt.want, n, "%+v", tt)
		if tt.err == "" {
			require.NoError(t, err, "%+v", tt)
		} else {
			require.ErrorContains(t, err, tt.err)
		}
	}
	g := GPU{Type: "NVIDIA-A100-SXM4-80GB", Count: 8, MIG: "1g.10gb"}
	assert.Equal(t, 56, g.Leaves())
	g.MIG = "9g.1gb"
	assert.Equal(t, 8, g.Leaves(), "it is refused elsewhere")
	assert.Equal(t, []string{"1g.6gb", "2g.12gb", "4g.24gb"}, MIGProfiles("NVIDIA-A30"))
}
