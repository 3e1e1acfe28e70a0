//go:build cgo

package nvml

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/test/nvml"
	"github.com/openpai/paictl/test/tier"
)

// card is the first GPU of a machine with a stand-in for NVIDIA's library. pai-nvml uses this stand-in.
type card struct {
	t    *testing.T
	root string
}

const firstBus = "0000:07:00.0"

func newCard(t *testing.T) *card {
	t.Helper()
	tier.More(t, "it compiles pai-nvml")
	c := &card{t, t.TempDir()}
	nvml.Install(t, c.root, nvml.Driver)
	return c
}

func (c *card) program(args ...string) *exec.Cmd {
	return exec.CommandContext(c.t.Context(), nvml.Probe(c.t), append([]string{"--root", c.root}, args...)...)
}

// split runs pai-nvml --split. split returns the result, or stderr.
func (c *card) split(profile string, n int, more ...string) (out gpu.Outcome, said string) {
	c.t.Helper()
	cmd := c.program(append([]string{"--split", firstBus, "--profile", profile, "--instances", strconv.Itoa(n)}, more...)...)
	answer, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(c.t, err, &exit)
		return out, string(exit.Stderr)
	}
	require.NoError(c.t, json.Unmarshal(answer, &out))
	return out, ""
}

// look returns pai-nvml's report of the machine's two GPUs.
func (c *card) look() []gpu.GPU {
	c.t.Helper()
	cmd := c.program()
	out, err := cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	require.True(c.t, lines.Scan(), "a report")
	var r gpu.Report
	require.NoError(c.t, json.Unmarshal(lines.Bytes(), &r))
	require.Len(c.t, r.GPUs, 2)
	return r.GPUs
}

func (c *card) is() string { c.t.Helper(); return c.look()[0].MIG.String() }

func (c *card) done(profile string, n int, more ...string) {
	c.t.Helper()
	out, said := c.split(profile, n, more...)
	require.Empty(c.t, said)
	require.Equal(c.t, gpu.Outcome{}, out)
}

func TestAGPUIsSplitAndBroughtBack(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	assert.Equal(t, "one piece", c.is())
	for _, p := range layout.MIGProfiles("NVIDIA-A100-SXM4-40GB") { // from each to the next
		n, err := layout.MIGInstances("NVIDIA-A100-SXM4-40GB", p)
		require.NoError(t, err)
		c.done(p, n)
		gpus := c.look()
		require.True(t, gpus[0].MIG.SplitInto(p, n), "%s", gpus[0].MIG)
		assert.Equal(t, "one piece", gpus[1].MIG.String(), "the other GPU")
		before := gpus[0].MIG.Named()
		c.done(p, n)
		assert.Equal(t, before, c.look()[0].MIG.Named(), "nothing is left to do")
	}
	c.done("1g.5gb", 7)
	g := c.look()[0]
	for i, one := range g.MIG.Instances {
		assert.Equal(t, uint32(i), one.Place, "in the order of their places")
		assert.Equal(t, uint64(4864)<<20, one.Memory)
		assert.Regexp(t, `^MIG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, one.UUID)
		assert.Equal(t, map[string]float64{gpu.MemoryUsed: 12, gpu.MemoryFree: 4852}, one.Values)
		assert.Equal(t, "14", one.Facts[gpu.Multiprocessors])
		assert.Equal(t, "1", one.Facts[gpu.SlicesGI])
	}
	assert.NotContains(t, g.Values, gpu.Utilization, "NVML has none where a GPU is split")
	c.done("", 0)
	assert.Equal(t, "one piece", c.is())
	c.done("", 0)
}

func TestWhatIsLeftHalfwayIsFinished(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	// The split creates only some instances, because the GPU temporarily has no space for the next instance.
	c.done("2g.10gb", 1)
	nvml.Knob(t, c.root, "full", 0, "yes")
	_, said := c.split("2g.10gb", 3, "--keep")
	assert.Contains(t, said, "there is no room for another instance")
	nvml.Knob(t, c.root, "full", 0, "")
	before := c.look()[0].MIG.Instances[0].UUID
	c.done("2g.10gb", 3, "--keep")
	assert.Contains(t, c.look()[0].MIG.Named(), before, "the one that was there still is")

	// Existing instances block the space for new instances.
	c.done("1g.5gb", 1)
	c.done("3g.20gb", 2)
	c.done("3g.20gb", 1)
	assert.Equal(t, "1 x 3g.20gb", c.is())

	// A restart of the machine removes the instances but keeps the MIG mode.
	c.done("3g.20gb", 2)
	nvml.Reboot(t, c.root)
	assert.Equal(t, "no instances", c.is())
	c.done("3g.20gb", 2, "--keep")
	assert.Equal(t, "2 x 3g.20gb", c.is())
}

func TestAGPUThatIsUsedIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	busy := func(profile string, n int, want string, more ...string) {
		t.Helper()
		out, said := c.split(profile, n, more...)
		assert.Empty(t, said)
		assert.Contains(t, out.Busy, want)
	}
	nvml.Knob(t, c.root, "process", 0, "4711")
	busy("1g.5gb", 7, "programs use it: process 4711")
	assert.Equal(t, "one piece", c.is())
	nvml.Knob(t, c.root, "process", 0, "")
	c.done("1g.5gb", 7)
	nvml.Knob(t, c.root, "process", 0, "4711")
	c.done("1g.5gb", 7) // there is nothing to do
	busy("", 0, "programs use it: process 4711")
	busy("3g.20gb", 2, "programs use it: process 4711")
	busy("1g.5gb", 6, "some are in use", "--keep")
	assert.Equal(t, "7 x 1g.5gb", c.is())
}

func TestAModeThatWaitsForAReset(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	nvml.Knob(t, c.root, "held", 0, "yes") // by a program that computes nothing, such as a monitor
	out, said := c.split("1g.5gb", 7)
	assert.Empty(t, said)
	assert.Equal(t, gpu.Outcome{Reset: true}, out)
	g := c.look()[0]
	assert.Equal(t, &gpu.MIG{Pending: true}, g.MIG)
	nvml.Activate(t, c.root)
	c.done("1g.5gb", 7)
	assert.Equal(t, "7 x 1g.5gb", c.is())
}

func TestWhatAGPUCantBeSplitInto(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	_, said := c.split("1g.20gb", 4)
	assert.Contains(t, said, "it has no profile 1g.20gb; it has 1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb, 1g.5gb+me, 1g.10gb")
	_, said = c.split("1g.10gb", 7) // as an A100 with 80 GB
	assert.Contains(t, said, "it has room for 4 instances of the profile 1g.10gb, but should have 7: is the model in layout.yaml right?")
	assert.Equal(t, "one piece", c.is())
	out, err := c.program("--split", "0000:ff:00.0").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "there is no GPU at 0000:ff:00.0")
	assert.NoFileExists(t, filepath.Join(c.root, "nothing"))
}

// The mock contains the profiles of several cards, as in NVIDIA's manual.
func TestSimulatedGPUsAreSplitAsTheirCardsAre(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"NVIDIA-A30", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200", "NVIDIA-B200"} {
		for _, p := range layout.MIGProfiles(model) {
			n, err := layout.MIGInstances(model, p)
			require.NoError(t, err)
			splits := map[int32]gpu.Split{1: {Profile: p, Instances: n}}
			c, err := Simulate("n1", gpu.Machine{Model: model, Count: 2}, func() (map[int32]gpu.Fault, error) { return nil, nil },
				func() (map[int32]gpu.Split, error) { return splits, nil })
			require.NoError(t, err, "%s %s", model, p)
			r, err := c.report()
			require.NoError(t, err)
			assert.Equal(t, "one piece", r.GPUs[0].MIG.String())
			require.True(t, r.GPUs[1].MIG.SplitInto(p, n), "%s %s: %s", model, p, r.GPUs[1].MIG)
			first := r.GPUs[1].MIG.Instances[0]
			require.Len(t, first.Files, 3)
			assert.Equal(t, "/dev/nvidia1", first.Files[0].Container)
			splits = map[int32]gpu.Split{}
			_, _ = c.wait()
			r, err = c.report()
			require.NoError(t, err)
			assert.Equal(t, "one piece", r.GPUs[1].MIG.String())
		}
	}
}
