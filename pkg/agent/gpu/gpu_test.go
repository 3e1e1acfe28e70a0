package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimulatedGPUsAreThoseOfTheirNode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "machines.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"n1":{"model":"A100","count":2},"n2":{"model":"H100","count":8}}`), 0o600))
	gpus, err := ReadSimulated(file, "n1")
	require.NoError(t, err)
	assert.Equal(t, []GPU{
		{Index: 0, UUID: "SIM-n1-0", Model: "A100", Simulated: true, Files: []File{{"/dev/null", "/dev/nvidia0"}}},
		{Index: 1, UUID: "SIM-n1-1", Model: "A100", Simulated: true, Files: []File{{"/dev/null", "/dev/nvidia1"}}},
	}, gpus)
	gpus, err = ReadSimulated(file, "n3")
	require.NoError(t, err)
	assert.Empty(t, gpus)
}

func TestABadFileOfSimulatedGPUs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                                 "cannot unmarshal array",
		`{"n1":{"model":"A100"}}`:            "n1 has 0 GPUs; it can have 1 to 1024",
		`{"n1":{"model":"A","count":-1}}`:    "n1 has -1 GPUs",
		`{"n1":{"model":"A","count":100000}`: "unexpected end",
		`{"n1":{"model":"A","count":9999}}`:  "n1 has 9999 GPUs",
		`{"n1":{"count":8}}`:                 "the GPUs of n1 have no model",
	} {
		file := filepath.Join(t.TempDir(), "machines.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadSimulated(file, "n1")
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, file)
	}
}
