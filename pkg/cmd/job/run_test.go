package job

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol/render"
)

func TestASessionWithoutPaictlEndsByItself(t *testing.T) {
	beat := filepath.Join(t.TempDir(), "beat")
	text := strings.NewReplacer("/dev/shm/.paictl-session", beat, "sleep 10", "sleep 0.1").Replace(holder)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := func() (*exec.Cmd, *strings.Builder) {
		var out strings.Builder
		cmd := exec.CommandContext(ctx, "sh", "-euc", text)
		cmd.Stdout = &out
		require.NoError(t, cmd.Start())
		return cmd, &out
	}
	alone, said := start()
	require.Error(t, alone.Wait())
	assert.Equal(t, 1, alone.ProcessState.ExitCode(), "it has not succeeded")
	assert.Contains(t, said.String(), "paictl has not been there for 2 minutes")

	kept, _ := start()
	ended := make(chan struct{})
	go func() { _, _ = kept.Process.Wait(); close(ended) }()
	until := time.After(3 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case at := <-tick.C:
			require.NoError(t, os.WriteFile(beat, []byte(at.String()), 0o600))
			continue
		case <-ended:
			t.Error("it ended though it was told every time that paictl is there")
		case <-until:
		}
		_ = kept.Process.Kill()
		return
	}
}

func TestWhatNoFlagSaysDependsOnTheCluster(t *testing.T) {
	gpus := &job.Offer{SKUs: map[string]render.SKU{"a": {GPU: 1, MilliCPU: 12500, MemoryMB: 64000}, "b": {GPU: 1, MilliCPU: 11990, MemoryMB: 90000}}}
	run := func(offer *job.Offer, given ...string) *RunOptions {
		o := &RunOptions{Command: []string{"true"}, given: func(flag string) bool { return strings.Contains(strings.Join(given, " "), flag) }}
		o.Draft.Image = "pytorch/pytorch:2.9.0"
		o.complete(offer)
		return o
	}
	d := run(&job.Offer{}).Draft
	assert.Equal(t, []any{0, 1.0, 1024}, []any{d.GPU, d.CPU, d.MemoryMB})
	d = run(gpus).Draft
	assert.Equal(t, []any{1, 11.9, 64000}, []any{d.GPU, d.CPU, d.MemoryMB}, "the part of the smallest machine that goes with a GPU")
	d = run(gpus, "gpus", "memory").Draft
	assert.Equal(t, []any{0, 1.0, 0}, []any{d.GPU, d.CPU, d.MemoryMB})
	assert.Regexp(t, `^pytorch-[a-z0-9]{5}$`, d.Name)
	for image, want := range map[string]string{"localhost:5000/a/b": "b", "x@sha256:12": "x", "a/..": "run", "node.js:3": "node_js"} {
		assert.Equal(t, want, nameOf(image))
	}
}
