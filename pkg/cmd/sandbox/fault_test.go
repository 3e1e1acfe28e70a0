package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// sandboxWithAgent returns the folder of a sandbox that isn't running. On its first host, an agent has run before.
func sandboxWithAgent(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sandbox.json"), []byte(`{"version":1,"name":"gpu","kind":"full","hosts":[
		{"name":"gpu-1","address":"10.77.0.10","kind":"full"},{"name":"gpu-2","address":"10.77.0.11","kind":"full"}]}`), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "hosts/gpu-1/var/lib/kubelet/plugins/gpu.paictl.openpai.org"), 0o755))
	return dir
}

func TestFaultSaysWhatIsWrongWithTheGPUByThen(t *testing.T) {
	dir := sandboxWithAgent(t)
	for _, tt := range []struct{ fault, want string }{
		{"clear", "GPU 3 of gpu-1 has no faults\n"},
		{"xid=79", "GPU 3 of gpu-1: XID 79\n"},
		{"xid=1000", "GPU 3 of gpu-1: XID 1000\n"},
		{"ecc", "GPU 3 of gpu-1: XID 1000, 1 uncorrected memory error\n"},
		{"ecc", "GPU 3 of gpu-1: XID 1000, 2 uncorrected memory errors\n"},
		{"lost", "GPU 3 of gpu-1: XID 1000, 2 uncorrected memory errors, lost\n"},
		{"hot", "GPU 3 of gpu-1: XID 1000, 2 uncorrected memory errors, lost, hot\n"},
		{"clear", "GPU 3 of gpu-1 has no faults\n"},
	} {
		f, out, _ := testFactory(t)
		require.NoError(t, execute(t, NewCmdFaultGPU(f, nil), "-d", dir, "gpu-1", "3", tt.fault))
		assert.Equal(t, tt.want, out(), tt.fault)
	}
}

func TestFaultIsPrintedAsJSON(t *testing.T) {
	dir := sandboxWithAgent(t)
	f, out, _ := testFactory(t)
	require.NoError(t, execute(t, NewCmdFaultGPU(f, nil), "-d", dir, "gpu-1", "0", "xid=48", "-o", "json"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out()), &got))
	assert.NotEmpty(t, got["at"])
	delete(got, "at")
	assert.Equal(t, map[string]any{"node": "gpu-1", "index": 0.0, "xid": 48.0}, got)
	f, out, _ = testFactory(t)
	require.NoError(t, execute(t, NewCmdFaultGPU(f, nil), "-d", dir, "gpu-1", "0", "clear", "-o", "json"))
	assert.JSONEq(t, `{"node":"gpu-1","index":0}`, out())
}

func TestFaultIsWrittenWhereTheAgentReadsIt(t *testing.T) {
	dir := sandboxWithAgent(t)
	f, _, _ := testFactory(t)
	require.NoError(t, execute(t, NewCmdFault(f), "gpu", "-d", dir, "gpu-1", "2", "lost"))
	faults, err := gpu.ReadFaults(filepath.Join(dir, "hosts/gpu-1/var/lib/kubelet/plugins/gpu.paictl.openpai.org/faults.json"))
	require.NoError(t, err)
	assert.True(t, faults[2].Lost)
	assert.False(t, faults[2].At.IsZero())
}

func TestFaultRefusesWhatItCannotDo(t *testing.T) {
	for name, tt := range map[string]struct {
		args   []string
		want   string
		remedy string
	}{
		"an index of no number":      {[]string{"gpu-1", "three", "lost"}, `"three" is not the index of a GPU`, "0 is the first"},
		"an index beyond all":        {[]string{"gpu-1", "99999999999", "lost"}, `"99999999999" is not the index of a GPU`, "0 is the first"},
		"a negative index":           {[]string{"gpu-1", "-12", "lost"}, `"-12" is not the index of a GPU`, "0 is the first"},
		"a negative index after --":  {[]string{"--", "gpu-1", "-1", "lost"}, "gpu-1 has no GPU -1", "numbered from 0"},
		"a fault misspelt":           {[]string{"gpu-1", "0", "lots"}, `there is no fault "lots"`, `did you mean "lost"?`},
		"an XID misspelt":            {[]string{"gpu-1", "0", "xdi=79"}, `there is no fault "xdi=79"`, `did you mean "xid=N"?`},
		"a number where none is":     {[]string{"gpu-1", "0", "ecc=2"}, `there is no fault "ecc=2"`, `did you mean "ecc"?`},
		"a fault of another kind":    {[]string{"gpu-1", "0", "explode"}, `there is no fault "explode"`, "there are: xid=N, ecc, lost, hot, clear"},
		"an XID without its number":  {[]string{"gpu-1", "0", "xid"}, `"xid" is not an XID`, "a number from 1 to 1000"},
		"an XID that isn't a number": {[]string{"gpu-1", "0", "xid=off"}, `"xid=off" is not an XID`, "such as xid=79"},
		"an XID below the first":     {[]string{"gpu-1", "0", "xid=0"}, `"xid=0" is not an XID`, "a number from 1 to 1000"},
		"an XID beyond the last":     {[]string{"gpu-1", "0", "xid=1001"}, `"xid=1001" is not an XID`, "a number from 1 to 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			f, out, _ := testFactory(t)
			err := execute(t, NewCmdFault(f), append([]string{"gpu", "-d", sandboxWithAgent(t)}, tt.args...)...)
			require.ErrorContains(t, err, tt.want)
			assert.Contains(t, hint.Of(err), tt.remedy)
			assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
			assert.Empty(t, out())
		})
	}
}

func TestFaultTellsOfAFlagThatIsNone(t *testing.T) {
	f, _, _ := testFactory(t)
	err := execute(t, NewCmdFault(f), "gpu", "gpu-1", "0", "lost", "-x")
	require.ErrorContains(t, err, "-x")
	assert.NotContains(t, err.Error(), "index")
}

func TestFaultIsCompleted(t *testing.T) {
	dir := sandboxWithAgent(t)
	f, _, _ := testFactory(t)
	cmd := NewCmdFaultGPU(f, func(context.Context, *FaultGPUOptions) error { t.Error("it ran"); return nil })
	require.NoError(t, cmd.ParseFlags([]string{"-d", dir}))
	for name, tt := range map[string]struct{ args, want []string }{
		"hosts":        {nil, []string{"gpu-1", "gpu-2"}},
		"no index":     {[]string{"gpu-1"}, nil},
		"faults":       {[]string{"gpu-1", "0"}, []string{"xid=31", "xid=48", "xid=74", "xid=79", "xid=95", "ecc", "lost", "hot", "clear"}},
		"nothing more": {[]string{"gpu-1", "0", "lost"}, nil},
	} {
		words, directive := cmd.ValidArgsFunction(cmd, tt.args, "")
		for i := range words {
			words[i], _, _ = strings.Cut(words[i], "\t")
		}
		assert.Equal(t, tt.want, words, name)
		assert.Equal(t, cobra.ShellCompDirectiveNoFileComp, directive, name)
	}
}

// parseFault must accept the words that completion offers, and the help must describe these words.
func TestFaultsOfCompletionAndHelpAreThere(t *testing.T) {
	f, _, _ := testFactory(t)
	cmd := NewCmdFaultGPU(f, nil)
	words, _ := cmd.ValidArgsFunction(cmd, []string{"gpu-1", "0"}, "")
	for _, w := range words {
		w, what, _ := strings.Cut(w, "\t")
		_, err := parseFault(w)
		require.NoError(t, err, w)
		assert.NotEmpty(t, what, w)
	}
	for _, w := range []string{"xid=N", "ecc", "lost", "hot", "clear"} {
		assert.Contains(t, cmd.Long, "\n  "+w+" ")
	}
	text, err := os.ReadFile("../../../docs/sandbox.md")
	require.NoError(t, err)
	for _, f := range faults() {
		assert.Contains(t, string(text), "\n| `"+f.name+f.value+"` |")
	}
}
