package trace_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Published figures for these traces are valid only if the traces never change.
func TestGenerateMakesTheSameBytesForEver(t *testing.T) {
	for _, c := range []struct {
		gpus      int
		seed      uint64
		csv, yaml string
	}{
		{64, 1, "ff66f211c7fe8bbe", "d63775676c8968c2"}, {64, 7, "78df93b7a99cb5e0", "d63775676c8968c2"}, {64, 42, "d3fb33d260d9f5d8", "d63775676c8968c2"},
		{512, 1, "de458842eef49e44", "6df809f53053c68d"}, {512, 7, "69e5ca9b74cb9aad", "6df809f53053c68d"}, {512, 42, "1cfabd0cb9ccf55b", "6df809f53053c68d"},
		{2048, 1, "f146cbf9f0972c73", "453a5894f9f88c1c"}, {2048, 7, "f25d52c03ad245b9", "453a5894f9f88c1c"}, {2048, 42, "122ae267ce615c98", "453a5894f9f88c1c"},
		{8192, 1, "c362fb91171daf4f", "b2df3389c84dacc4"}, {8192, 7, "5fea50193ac6005d", "b2df3389c84dacc4"}, {8192, 42, "ce1768c1b03f876f", "b2df3389c84dacc4"},
		{65536, 7, "28e3a8e4db28ebab", "0b17b7a334ae0774"},
	} {
		t.Run(fmt.Sprintf("%d GPUs, seed %d", c.gpus, c.seed), func(t *testing.T) {
			tr, err := trace.Generate(c.gpus, c.seed)
			require.NoError(t, err)
			var csv bytes.Buffer
			require.NoError(t, trace.WriteCSV(&csv, tr.Jobs))
			assert.Equal(t, c.csv, hash(csv.Bytes()), "CSV")
			assert.Equal(t, c.yaml, hash(tr.YAML), "YAML")
		})
	}
}

func TestGenerateGivesEveryGPUToAVirtualCluster(t *testing.T) {
	for _, gpus := range trace.Sizes() {
		tr, err := trace.Generate(gpus, 1)
		require.NoError(t, err)
		size := map[string]int{"RACK": min(gpus, 128), "RACK.NODE": 8, "RACK.NODE.QUAD": 4}
		owned := 0
		for _, v := range tr.Config.VirtualClusters {
			for _, c := range v.Cells {
				owned += size[c.Type] * c.Count
			}
		}
		assert.Equal(t, gpus, owned)
	}
}

func TestGenerateRefusesASizeItHasNoRuleFor(t *testing.T) {
	_, err := trace.Generate(100, 1)
	require.EqualError(t, err, "there is no trace of 100 GPUs: the sizes are [64 512 2048 8192 65536]")
}
