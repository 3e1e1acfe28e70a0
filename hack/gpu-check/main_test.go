package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
)

var update = flag.Bool("update", false, "rewrite golden files")

// station is a machine with two H100, on which the outputs of nvidia-smi and pai-nvml agree. Tests change the files with these outputs. The outputs
// were written by hand in the formats of driver 550, because paictl hasn't been run on a machine with a GPU yet.
type station struct {
	t    *testing.T
	root string
	dir  string // of the programs and their outputs
}

func newStation(t *testing.T) *station {
	t.Helper()
	s := &station{t: t, root: t.TempDir(), dir: t.TempDir()}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS("testdata")))
	script, err := os.ReadFile("testdata/nvidia-smi")
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(s.dir, "nvidia-smi")))
	runnable.Write(t, filepath.Join(s.dir, "nvidia-smi"), script)
	runnable.Write(t, filepath.Join(s.dir, "pai-nvml"), "#!/bin/sh\ncat \"$(dirname \"$0\")/report.jsonl\"\nexec sleep 600\n")
	for bus, node := range map[string]string{"0000:1b:00.0": "0", "0000:43:00.0": "1"} {
		dir := "sys/bus/pci/devices/" + bus
		s.file(dir+"/vendor", "0x10de\n")
		s.file(dir+"/class", "0x030200\n")
		s.file(dir+"/numa_node", node+"\n")
	}
	s.file("sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n")
	s.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n")
	s.file("etc/os-release", "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n")
	s.file("dev/kmsg", "4,1,1,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n4,2,2,-;NVRM: Xid (PCI:0000:43:00): 31, pid=7, name=python\n")
	return s
}

func (s *station) file(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(s.t, os.WriteFile(path, []byte(content), 0o600))
}

// replace replaces a text in the output of a program.
func (s *station) replace(name, from, to string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	data, err := os.ReadFile(path)
	require.NoError(s.t, err)
	require.Contains(s.t, string(data), from)
	require.NoError(s.t, os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600))
}

// run runs gpu-check. It returns the exit code, all output, and the report.
func (s *station) run(more ...string) (code int, said, report string) {
	s.t.Helper()
	out := s.t.TempDir()
	var b bytes.Buffer
	args := append([]string{"--root", s.root, "--out", out, "--measure=0", "--nvidia-smi", filepath.Join(s.dir, "nvidia-smi"), "--pai-nvml", filepath.Join(s.dir, "pai-nvml")}, more...)
	code = run(s.t.Context(), args, &b, &b)
	data, _ := os.ReadFile(filepath.Join(out, "report.md")) // there may be none
	return code, b.String(), string(data)
}

func TestAMachineWithoutAGPUSaysSo(t *testing.T) {
	t.Parallel()
	s := &station{t: t, root: t.TempDir(), dir: t.TempDir()}
	code, said, report := s.run()
	assert.Equal(t, exitNone, code)
	assert.Equal(t, "gpu-check: no NVIDIA device found: no PCI device of vendor 10de is a display controller\n", said)
	assert.Empty(t, report)
	s.file("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n")
	s.file("sys/bus/pci/devices/0000:1b:00.0/class", "0x040300\n") // the sound of a graphics card
	code, _, _ = s.run()
	assert.Equal(t, exitNone, code)
}

func TestAGPUWithoutADriverIsNotCompared(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NoError(t, os.RemoveAll(filepath.Join(s.root, "proc")))
	code, said, _ := s.run()
	assert.Equal(t, exitNone, code)
	assert.Contains(t, said, "2 NVIDIA devices found, but the driver isn't loaded")
}

func TestBadArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--every"}, {"all"}, {"--measure=-1s"}} {
		var b bytes.Buffer
		assert.Equal(t, exitUsage, run(t.Context(), args, &b, &b), args)
		assert.NotEmpty(t, b.String())
	}
}

func TestTheReportOfAMachineThatAgrees(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	code, said, report := s.run()
	assert.Zero(t, code, said)
	assert.NotContains(t, said, verdictDiffers)
	_, rest, found := strings.Cut(report, "kernel ") // the kernel and the day are this machine's
	require.True(t, found)
	_, rest, _ = strings.Cut(rest, ", ")
	const golden = "testdata/report.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(rest), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), rest)
	assert.NotContains(t, report, "GPU-1111", "a public report doesn't identify hardware")
}

func TestDifferencesFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, from, to, want string }{
		"UUID":        {"base.csv", "GPU-11111111-2222-3333-4444-000000000001", "GPU-99999999-2222-3333-4444-000000000001", "| GPU 1 | UUID | GPU-1111"},
		"model":       {"base.csv", "NVIDIA H100 80GB HBM3, 00000000:1B", "NVIDIA H200, 00000000:1B", "| GPU 0 | name | NVIDIA-H100-80GB-HBM3 | NVIDIA-H200 | differs |"},
		"address":     {"report.jsonl", "0000:43:00.0", "0000:44:00.0", "| GPU 1 | address | missing | present | differs |"},
		"driver":      {"base.csv", "550.54.15", "570.10", "| driver | version | 550.54.15 | 570.10 | differs |"},
		"memory":      {"fields/memory.total", "81559", "40960", "| GPU 0 | memory.total MiB | 81559 | 40960 | differs |"},
		"temperature": {"fields/temperature.gpu", "31", "39", "| GPU 0 | temperature.gpu °C | 31 | 39 | differs |"},
		"ECC":         {"fields/ecc.errors.uncorrected.volatile.total", "0", "1", "| GPU 0 | ecc.errors.uncorrected.volatile.total | 0 | 1 | differs |"},
		"pending":     {"fields/remapped_rows.pending", "No", "Yes", "| GPU 0 | remapped_rows.pending | 0 | 1 | differs |"},
		"MIG mode":    {"fields/mig.mode.current", "Disabled", "Enabled", "| GPU 0 | MIG mode | Disabled | Enabled | differs |"},
		"NVLink":      {"nvlink-errors", "Link 1: Replay Errors: 1", "Link 1: Replay Errors: 5", "| GPU 0 | NVLink replay errors | 3 | 7 | differs |"},
		"NUMA":        {"report.jsonl", `"numa": 1`, `"numa": 0`, "| GPU 1 | NUMA node (kernel's PCI list) | 0 | 1 | differs |"},
		"fabric":      {"report.jsonl", `"processes": 1`, `"unusable": "its NVLink fabric failed"`, "| GPU 1 | state | lost: false its NVLink fabric failed | present | differs |"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			s.replace(c.file, c.from, c.to)
			code, said, report := s.run()
			assert.Equal(t, exitDiffers, code, said)
			assert.Contains(t, report, c.want)
		})
	}
}

func TestInstancesAreComparedByTheirNumbersAndUUIDs(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.replace("fields/mig.mode.current", "Disabled\nDisabled", "Enabled\nDisabled")
	s.replace("query.xml", "None\n\t\t</mig_devices>\n\t\t<uuid>GPU-11111111-2222-3333-4444-000000000000", `
			<mig_device><index>0</index><gpu_instance_id>9</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device>
		</mig_devices>
		<uuid>GPU-11111111-2222-3333-4444-000000000000`)
	s.replace("list", "-000000000000)\n", "-000000000000)\n  MIG 1g.10gb     Device  0: (UUID: MIG-aaaa)\n")
	const split = `"mig": {"enabled": true, "instances": [{"profile": "1g.10gb", "gi": 9, "ci": 0, "place": 0, "uuid": "MIG-aaaa"}]}, "values": {"DCGM_FI_DEV_FB_USED": 4,`
	s.replace("report.jsonl", `"mig": {}, "values": {"DCGM_FI_DEV_FB_USED": 4,`, split)
	code, said, report := s.run()
	assert.Zero(t, code, said)
	assert.Contains(t, report, "| GPU 0 | MIG mode | Enabled | Enabled | equal |")
	assert.Contains(t, report, "| GPU 0 | numbers and UUIDs of instances |  |  | equal |")
	assert.Contains(t, report, "- GPU 0: 1g.10gb, GPU instance 9, compute instance 0")
	s.replace("list", "MIG-aaaa", "MIG-bbbb")
	code, _, report = s.run()
	assert.Equal(t, exitDiffers, code)
	assert.Contains(t, report, "| GPU 0 | numbers and UUIDs of instances | 9/0 MIG-aaaa | 9/0 MIG-bbbb | differs |")
}

func TestFieldsThatADriverDoesntHaveAreNoDifference(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"ecc.errors.corrected.volatile.total", "remapped_rows.pending"} {
		require.NoError(t, os.Remove(filepath.Join(s.dir, "fields", name)))
	}
	s.replace("fields/power.draw", "71.52", "[N/A]")
	code, said, report := s.run()
	assert.Zero(t, code, said)
	assert.Contains(t, report, "| GPU 0 | power.draw W | 71.4 | missing | only one has it |")
	assert.Contains(t, report, "| GPU 1 | remapped_rows.pending | 0 | missing | only one has it |")
}

func TestProgramsThatFailAreNamed(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	runnable.Write(t, filepath.Join(s.dir, "pai-nvml"), "#!/bin/sh\necho 'pai-nvml: the driver is broken' >&2\nexit 1\n")
	code, said, _ := s.run()
	assert.Equal(t, exitDiffers, code)
	assert.Contains(t, said, "gpu-check: pai-nvml: the driver is broken")
	s = newStation(t)
	runnable.Write(t, filepath.Join(s.dir, "nvidia-smi"), "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
	code, said, _ = s.run()
	assert.Equal(t, exitDiffers, code)
	assert.Contains(t, said, "nvidia-smi: exit status 6: No devices were found")
}
