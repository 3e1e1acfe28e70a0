package layout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func a100(mem int64) Facts {
	f := Facts{Arch: "amd64", OSID: "ubuntu", OSVersion: "22.04", VCores: 128, CPUModel: "EPYC", MemKiB: mem, Driver: "535.1",
		Disks: []BlockDevice{{Name: "nvme0n1", Bytes: 1920383410176, Kind: "nvme"}}}
	for i := range 8 {
		f.NVIDIA = append(f.NVIDIA, NVIDIAGPU{Model: "NVIDIA A100-SXM4-80GB", UUID: fmt.Sprint(i)})
	}
	return f
}

func TestEqualMachinesShareASKU(t *testing.T) {
	cpu := Facts{Arch: "amd64", OSID: "debian", OSVersion: "12", VCores: 64, CPUModel: "Xeon", MemKiB: 528224736}
	lost := a100(1056310784)
	lost.NVIDIA = lost.NVIDIA[:7]
	other := a100(1056310784)
	other.Driver = "550.2"
	small := a100(528224736)
	skus, assigned := SKUs(map[string]Facts{
		"10.0.0.1": a100(1056310784), "10.0.0.2": a100(1056310784 - 3000), "10.0.0.3": other,
		"10.0.0.4": cpu, "10.0.0.5": lost, "10.0.0.6": small,
	})
	assert.Equal(t, map[string]string{
		"10.0.0.1": "8x-a100-sxm4-80gb", "10.0.0.2": "8x-a100-sxm4-80gb", "10.0.0.3": "8x-a100-sxm4-80gb",
		"10.0.0.4": "cpu-64c-512g", "10.0.0.5": "7x-a100-sxm4-80gb", "10.0.0.6": "8x-a100-sxm4-80gb-2",
	}, assigned)
	s := skus["8x-a100-sxm4-80gb"]
	assert.Equal(t, "1007Gi", s.Mem)
	assert.Equal(t, &GPU{Type: "NVIDIA-A100-SXM4-80GB", Count: 8}, s.GPU, "the machines' drivers differ")
	assert.Equal(t, "ubuntu22.04", s.OS)
	assert.Equal(t, []Disk{{Name: "nvme0n1", Size: "1788Gi", Kind: "nvme"}}, s.Disks)
	assert.True(t, s.Discovered)
	assert.Nil(t, skus["cpu-64c-512g"].GPU)
}

func TestSKUsDoNotDependOnTheOrderOfMachines(t *testing.T) {
	first, second := map[string]Facts{}, map[string]Facts{}
	for i := range 50 {
		id := fmt.Sprintf("10.0.0.%02d", i)
		first[id] = a100(1056310784 - int64(i)*700)
		second[id] = first[id]
	}
	skus1, a1 := SKUs(first)
	skus2, a2 := SKUs(second)
	assert.Equal(t, skus1, skus2)
	assert.Equal(t, a1, a2)
	assert.Len(t, skus1, 1)
}

func TestNamesTellTheFittedMemory(t *testing.T) {
	for kib, want := range map[int64]string{
		1 << 10: "cpu-4c-1g", 3984588: "cpu-4c-4g", 8024684: "cpu-4c-8g", 16314320: "cpu-4c-16g", 24684084: "cpu-4c-24g", 65800000: "cpu-4c-64g",
		131800000: "cpu-4c-128g", 263800000: "cpu-4c-256g", 528224736: "cpu-4c-512g", 1056310784: "cpu-4c-1024g", 792000000: "cpu-4c-768g",
	} {
		assert.Equal(t, want, skuName(Facts{VCores: 4, MemKiB: kib}))
	}
}

func TestAMachinesOwnSSHWinsFieldByField(t *testing.T) {
	l := Layout{SSH: SSH{Username: "u", Password: "p", KeyFile: "k", Port: 22, JumpHost: "j", KnownHosts: "h"}}
	assert.Equal(t, l.SSH, l.SSHFor(Machine{}))
	got := l.SSHFor(Machine{SSH: &SSH{Password: "q", Port: 2222}})
	assert.Equal(t, SSH{Username: "u", Password: "q", Port: 2222, JumpHost: "j", KnownHosts: "h"}, got)
	assert.Equal(t, "q", got.Password.Reveal())
	assert.Equal(t, "k2", l.SSHFor(Machine{SSH: &SSH{KeyFile: "k2"}}).KeyFile)
}
