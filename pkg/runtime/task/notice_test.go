package task

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/runtime/journal"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// factsWith returns the facts about a task with GPUs, and the runtime's messages. file is the agent's notice. asked reports
// whether nvidia-smi was called.
func factsWith(t *testing.T, file string) (e rules.Exit, said string, asked bool) {
	t.Helper()
	document, err := filepath.Abs("testdata/nvidia-smi/ampere-510-dram.xml")
	require.NoError(t, err)
	mark := filepath.Join(t.TempDir(), "asked")
	fakeSMI(t, fmt.Sprintf("touch %s; cat %s", mark, document))
	folder := t.TempDir()
	if file != "" {
		require.NoError(t, os.WriteFile(filepath.Join(folder, notice.File), []byte(file), 0o644))
	}
	var out bytes.Buffer
	task := &task{Options: Options{GPUs: folder, Settle: time.Millisecond}, role: &spec.Role{GPU: 1}, environ: os.Environ(),
		journal: journal.Open(&out, filepath.Join(t.TempDir(), "runtime.log"), time.Now)}
	e.Code = 1
	task.facts(&e)
	_, err = os.Stat(mark)
	return e, out.String(), err == nil
}

func TestWhatTheAgentSaysOfGPUsCountsAndNvidiaSMIIsNotAsked(t *testing.T) {
	for name, c := range map[string]struct {
		file, fault, said string
		ecc               bool
	}{
		"all are well": {file: `{"gpus": [{"index": 0, "uuid": "GPU-a"}, {"index": 1, "uuid": "GPU-b"}]}`},
		"memory errors of one": {file: `{"gpus": [{"index": 0, "uuid": "GPU-a"}, {"index": 1, "uuid": "GPU-b", "uncorrected": true}, {"index": 2, "uuid": "GPU-c"}]}`,
			ecc: true},
		"one is sick": {file: `{"gpus": [{"index": 0, "uuid": "GPU-a"}, {"index": 3, "uuid": "GPU-b", "reason": "XID 79: it has fallen off the bus", "xids": [79]}]}`,
			fault: "GPU 3 (GPU-b): XID 79: it has fallen off the bus",
			said:  "[pai-runtime] the machine reports sick GPUs: GPU 3 (GPU-b): XID 79: it has fallen off the bus\n"},
		"mistakes of the program": {file: `{"gpus": [{"index": 0, "uuid": "GPU-a", "xids": [31, 43]}, {"index": 1, "uuid": "GPU-b", "xids": []}]}`,
			said: "[pai-runtime] the driver has reported errors of healthy GPUs: GPU 0 (GPU-a): XID 31, 43\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e, said, asked := factsWith(t, c.file)
			assert.Equal(t, c.ecc, e.GPUECC)
			assert.Equal(t, c.fault, e.GPUFault)
			assert.Equal(t, c.said, said)
			assert.False(t, asked)
		})
	}
}

// The program may notice the fault before the agent does.
func TestAFaultThatIsToldAMomentAfterTheProgramFailed(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, notice.Write(folder, notice.GPUs{GPUs: []notice.GPU{{Index: 3, UUID: "GPU-b"}}}))
	time.AfterFunc(200*time.Millisecond, func() {
		_ = notice.Write(folder, notice.GPUs{GPUs: []notice.GPU{{Index: 3, UUID: "GPU-b", Reason: "XID 79: gone"}}})
	})
	task := &task{Options: Options{GPUs: folder, Settle: time.Minute}, role: &spec.Role{GPU: 1}, environ: os.Environ(),
		journal: journal.Open(&bytes.Buffer{}, filepath.Join(t.TempDir(), "runtime.log"), time.Now)}
	e := rules.Exit{Code: 1}
	task.facts(&e)
	assert.Equal(t, "GPU 3 (GPU-b): XID 79: gone", e.GPUFault)
}

func TestNvidiaSMIIsAskedWhereNoAgentSaysAnythingThatCanBeRead(t *testing.T) {
	e, said, asked := factsWith(t, "")
	assert.True(t, asked)
	assert.True(t, e.GPUECC)
	assert.Empty(t, said)
	for _, file := range []string{"{", "\x00\xff", "[]", `{"gpus": {"a": 1}}`, `{"gpus": [{"index": "three"}]}`, `{"gpus": [{"index": 1, "reason": "XID 79"}`} {
		e, said, asked = factsWith(t, file)
		assert.True(t, asked, file)
		assert.True(t, e.GPUECC, file)
		assert.Empty(t, e.GPUFault, file)
		assert.Contains(t, said, "[pai-runtime] the machine's report on the task's GPUs can't be read: ", file)
	}
}

func TestManySickGPUsAreNamedInFewWords(t *testing.T) {
	var gpus []notice.GPU
	for i := range int32(16) {
		gpus = append(gpus, notice.GPU{Index: i, UUID: fmt.Sprintf("GPU-%08d-1111-2222-3333-444444444444", i), Reason: "XID 95:\n" + strings.Repeat("ü", 5000)})
	}
	told := named(gpus, func(g notice.GPU) string { return g.Reason })
	assert.Contains(t, told, "GPU 2 (GPU-00000002-1111-2222-3333-444444444444): XID 95: ü")
	assert.True(t, strings.HasSuffix(told, "...; and 13 more"), told)
	e := rules.Exit{Code: 1, GPUFault: told, UserLog: bytes.Repeat([]byte("Segmentation fault ü\n"), 10_000)}
	text := report.Encode(report.New(e, rules.Builtin().ClassifyExit(e)))
	assert.LessOrEqual(t, len(text), report.Max)
	r, ok := report.Decode(string(text))
	require.True(t, ok)
	assert.Equal(t, told, r.GPUFault, "it is kept whole")
	assert.NotEmpty(t, r.UserLog)
}
