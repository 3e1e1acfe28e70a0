package task

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/test/runnable"
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(data)
}

func TestKillsAreCountedFromBothVersionsOfControlGroups(t *testing.T) {
	for name, want := range map[string]int{
		"v2-none": 0, "v2-reclaimed-only": 0, "v2-killed": 2, "v1-none": 0, "v1-killed": 3, "v1-before-4.13": 0,
	} {
		assert.Equal(t, want, parseKills(testdata(t, "cgroup/"+name)), name)
	}
	for _, text := range []string{"", "\n", "oom_kill", "oom_kill x", "oom_kill 99999999999999999999", "oom_kill -1", "oom_kill 1 2", "\x00"} {
		assert.Zero(t, parseKills(text), text)
	}
}

func TestTheFirstVersionThatIsThereCounts(t *testing.T) {
	none, v1, v2 := "testdata/cgroup/none-such", "testdata/cgroup/v1-killed", "testdata/cgroup/v2-killed"
	assert.Equal(t, 2, oomKills([]string{v2, v1}))
	assert.Equal(t, 3, oomKills([]string{none, v1}))
	assert.Equal(t, 0, oomKills([]string{none, none}))
	assert.Equal(t, 3, oomKills([]string{"testdata", v1}), "a folder")
}

// The documents contain only the parts that are easy to misinterpret. Their names contain the generation of the GPU and the
// version of the driver.
func TestMemoryErrorsOfGPUsAreThoseThatCannotBeCorrectedAndAreNew(t *testing.T) {
	for name, want := range map[string]bool{
		"pascal-510-healthy.xml":       false, // but in its lifetime, with retired pages
		"volta-450-corrected.xml":      false,
		"volta-450-double-bit.xml":     true, // of the second GPU
		"geforce-470-no-ecc.xml":       false,
		"kepler-390-not-supported.xml": false,
		"ampere-510-healthy.xml":       false, // but in its lifetime, with remapped rows
		"ampere-510-dram.xml":          true,
		"ampere-510-mig-healthy.xml":   false,
		"ampere-510-mig-sram.xml":      true, // of a device, the GPU has no counts
		"hopper-550-healthy.xml":       false,
		"hopper-550-secded.xml":        true,
		"ada-580-disabled.xml":         false,
		"infoROM-corrupted.txt":        true, // the document counts in spite of the warning
		"lost-in-the-middle.txt":       false,
		"no-driver.txt":                false,
		"no-devices.txt":               false,
		"driver-mismatch.txt":          false,
		"lost.txt":                     false,
	} {
		assert.Equal(t, want, parseECC(testdata(t, "nvidia-smi/"+name)), name)
	}
}

func fakeSMI(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	runnable.Write(t, filepath.Join(dir, "nvidia-smi"), "#!/bin/sh\n"+script)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestWhatNvidiaSMISaysInWordsReachesTheFailureRules(t *testing.T) {
	set := rules.Builtin()
	for name, c := range map[string]struct {
		words string
		code  int // the rule's
	}{
		"no-driver.txt":          {"NVIDIA-SMI has failed because it couldn't communicate", 0},
		"no-devices.txt":         {"No devices were found", 0},
		"driver-mismatch.txt":    {"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.104", 0},
		"lost.txt":               {"Unable to determine the device handle for GPU", 118},
		"lost-in-the-middle.txt": {"GPU is lost.  Reboot", 118},
		"infoROM-corrupted.txt":  {"WARNING: infoROM is corrupted", 0},
	} {
		file, err := filepath.Abs("testdata/nvidia-smi/" + name)
		require.NoError(t, err)
		fakeSMI(t, "cat "+file+"; exit 15")
		s := askSMI(t.Context(), os.Environ())
		assert.Contains(t, s.complaints, c.words, name)
		assert.NotContains(t, s.complaints, "None", name)
		assert.NotContains(t, s.complaints, "<", name)
		assert.Equal(t, testdata(t, "nvidia-smi/"+name), s.document, name)
		m := set.ClassifyExit(rules.Exit{Code: 1, PlatformLog: []byte(s.complaints)})
		if c.code != 0 {
			assert.Equal(t, c.code, m.Code, name)
		}
	}
}

func TestANvidiaSMIThatWorksHasNoComplaints(t *testing.T) {
	file, err := filepath.Abs("testdata/nvidia-smi/ampere-510-dram.xml")
	require.NoError(t, err)
	fakeSMI(t, `[ "$*" = "-q -x" ] && cat `+file+"; echo a warning >&2")
	s := askSMI(t.Context(), os.Environ())
	assert.Empty(t, s.complaints)
	assert.True(t, parseECC(s.document))
	t.Setenv("PATH", "/no/path")
	assert.Equal(t, smi{}, askSMI(t.Context(), os.Environ()), "an image without it")
}

func TestANvidiaSMIThatHangsIsNotWaitedFor(t *testing.T) {
	t.Run("one that can be killed", func(t *testing.T) {
		fakeSMI(t, "echo '<volatile>'; trap '' TERM; sleep 60 & wait; sleep 60")
		began := time.Now()
		_, ok := waitSMI(50*time.Millisecond, func(ctx context.Context) smi { return askSMI(ctx, os.Environ()) })
		assert.False(t, ok)
		assert.Less(t, time.Since(began), 30*time.Second)
	})
	t.Run("one that hangs within the driver", func(t *testing.T) {
		never := make(chan smi)
		defer close(never)
		_, ok := waitSMI(time.Millisecond, func(context.Context) smi { return <-never })
		assert.False(t, ok)
	})
	t.Run("one that answers", func(t *testing.T) {
		s, ok := waitSMI(time.Minute, func(context.Context) smi { return smi{document: "x"} })
		assert.True(t, ok)
		assert.Equal(t, "x", s.document)
	})
}

func TestANvidiaSMIThatSaysTooMuchIsCutOff(t *testing.T) {
	fakeSMI(t, "exec yes '<gpu>'")
	s := askSMI(t.Context(), os.Environ())
	assert.Len(t, s.document, maxSMI)
	assert.False(t, parseECC(s.document))
	assert.LessOrEqual(t, len(complaints(strings.Repeat(strings.Repeat("x", 1000)+"\n", 1000))), 1000)
}

func FuzzParseECC(f *testing.F) {
	list, err := filepath.Glob("testdata/nvidia-smi/*")
	require.NoError(f, err)
	for _, name := range list {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		parseECC(text)
		complaints(outside(text))
		parseKills(text)
	})
}
