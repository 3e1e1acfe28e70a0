package gpu

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheGPUsOfANodeAreItsOwn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "machines.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"n1":{"model":"A100","count":2,"simulated":true},"n2":{"model":"H100","count":8}}`), 0o600))
	s, err := ReadMachine(file, "n1")
	require.NoError(t, err)
	assert.Equal(t, Machine{Model: "A100", Count: 2, Simulated: true}, s)
	s, err = ReadMachine(file, "n2")
	require.NoError(t, err)
	assert.Equal(t, Machine{Model: "H100", Count: 8}, s)
	s, err = ReadMachine(file, "n3")
	require.NoError(t, err)
	assert.Zero(t, s)
	assert.Equal(t, []File{{"/dev/null", "/dev/nvidia3"}}, SimulatedFiles(3))
}

func TestABadFileOfMachines(t *testing.T) {
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
		_, err := ReadMachine(file, "n1")
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, file)
	}
}

func TestFaultsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), FaultsFile)
	none, err := ReadFaults(file)
	require.NoError(t, err)
	assert.Empty(t, none, "no file, no faults")
	want := map[int32]Fault{0: {XID: 79, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, 7: {ECC: 2, Hot: true, Lost: true}}
	require.NoError(t, WriteFaults(file, want))
	got, err := ReadFaults(file)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	require.ErrorIs(t, WriteFaults("/nowhere/faults.json", want), os.ErrNotExist)
	for text, want := range map[string]string{`[`: "unexpected end", `{"x":{}}`: `"x" is not the index of a GPU`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadFaults(file)
		require.ErrorContains(t, err, want)
	}
}
