//go:build cgo

package nvml

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

type machine struct {
	mu      sync.Mutex
	faults  map[int32]gpu.Fault
	reports []*gpu.Report
	read    int // how many of them were looked at
}

func (m *machine) set(faults map[int32]gpu.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = faults
}

// watch starts a collector. watch records the reports until the test ends.
func watch(t *testing.T, model string) *machine {
	t.Helper()
	m := &machine{}
	c, err := Simulate("n1", gpu.Machine{Model: model, Count: 4}, func() (map[int32]gpu.Fault, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.faults, nil
	}, func() (map[int32]gpu.Split, error) { return nil, nil })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, 200*time.Millisecond, func(r *gpu.Report) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.reports = append(m.reports, r)
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	return m
}

// eventually waits for a new report that the function is accepts.
func (m *machine) eventually(t *testing.T, is func(*gpu.Report) bool) *gpu.Report {
	t.Helper()
	var found *gpu.Report
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for found == nil && m.read < len(m.reports) {
			if m.read++; is(m.reports[m.read-1]) {
				found = m.reports[m.read-1]
			}
		}
		return found != nil
	}, 30*time.Second, 10*time.Millisecond)
	return found
}

func TestWhatIsSaidOfGPUs(t *testing.T) {
	t.Parallel()
	for model, memory := range map[string]uint64{"NVIDIA-H100-80GB-HBM3": 80 << 30, "A100": 80 << 30, "A30": 24 << 30, "V100": 40 << 30} {
		m := watch(t, model)
		r := m.eventually(t, func(*gpu.Report) bool { return true })
		assert.Equal(t, []string{"550.54.15", "12.4"}, []string{r.Driver, r.CUDA})
		require.Len(t, r.GPUs, 4)
		g := r.GPUs[2]
		assert.Equal(t, gpu.GPU{Index: 2, Bus: "0000:03:00.0", UUID: "SIM-n1-2", Model: model, Memory: memory, Simulated: true,
			Files: gpu.SimulatedFiles(2), Facts: g.Facts, Values: g.Values, MIG: &gpu.MIG{}}, g)
		assert.Equal(t, "true", g.Facts[gpu.MIGCapable])
		assert.Equal(t, map[bool]string{true: "9.0", false: "8.0"}[model == "NVIDIA-H100-80GB-HBM3"], g.Facts[gpu.Compute])
		for _, name := range []string{gpu.Temperature, gpu.Power, gpu.Energy, gpu.Utilization, gpu.MemoryUsed, gpu.MemoryFree, gpu.SMClock, gpu.ClockReasons,
			gpu.DoubleBitVolatile, gpu.RowRemapPending, gpu.PCIeReplays, gpu.NVLinkReplays} {
			assert.Contains(t, g.Values, name)
		}
		_, err := json.Marshal(r)
		require.NoError(t, err)
	}
}

func TestFaultsAreToldAsOfRealGPUs(t *testing.T) {
	t.Parallel()
	m := watch(t, "A100")
	at := time.Now()
	m.set(map[int32]gpu.Fault{1: {XID: 79, Lost: true, At: at}, 2: {ECC: 3}, 3: {Hot: true}})
	tells := func(xid int) func(*gpu.Report) bool {
		return func(r *gpu.Report) bool {
			return slices.ContainsFunc(r.Events, func(e gpu.Event) bool { return e.Bus == "0000:02:00.0" && e.XID == xid })
		}
	}
	r := m.eventually(t, tells(79))
	assert.WithinDuration(t, at, r.Events[0].At, 20*time.Second)
	assert.True(t, r.GPUs[1].Lost)
	assert.Empty(t, r.GPUs[1].Values)
	assert.InDelta(t, 3, r.GPUs[2].Values[gpu.DoubleBitVolatile], 0)
	assert.InDelta(t, 96, r.GPUs[3].Values[gpu.Temperature], 0)
	assert.InDelta(t, 0x40, r.GPUs[3].Values[gpu.ClockReasons], 0)
	r = m.eventually(t, func(*gpu.Report) bool { return true })
	assert.Empty(t, r.Events, "it is told once")

	m.set(map[int32]gpu.Fault{1: {XID: 79, Lost: true, At: at.Add(time.Second)}})
	m.eventually(t, tells(79)) // it happened again
	m.set(nil)
	r = m.eventually(t, tells(0))
	assert.False(t, r.GPUs[1].Lost)
}

// fake returns a library that simulates the behavior of some drivers.
func fake(change func(*mock.Interface, *mock.EventSet)) *mock.Interface {
	set := &mock.EventSet{FreeFunc: func() nvml.Return { return nvml.SUCCESS }, WaitFunc: func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_TIMEOUT }}
	lib := &mock.Interface{
		InitFunc:                       func() nvml.Return { return nvml.SUCCESS },
		EventSetCreateFunc:             func() (nvml.EventSet, nvml.Return) { return set, nvml.SUCCESS },
		ErrorStringFunc:                func(r nvml.Return) string { return fmt.Sprint("error ", int(r)) },
		SystemGetDriverVersionFunc:     func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN },
		SystemGetCudaDriverVersionFunc: func() (int, nvml.Return) { return 13010, nvml.SUCCESS },
		DeviceGetCountFunc:             func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		DeviceGetHandleByIndexFunc:     func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_GPU_IS_LOST },
	}
	change(lib, set)
	return lib
}

func TestALibraryThatCantBeAsked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*mock.Interface, *mock.EventSet){
		"open NVIDIA's management library: the driver isn't loaded": func(l *mock.Interface, _ *mock.EventSet) {
			l.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
		},
		"open NVIDIA's management library: it isn't installed; it comes with the driver": func(l *mock.Interface, _ *mock.EventSet) {
			l.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
		},
		"the loaded driver and the library have different versions: restart the machine": func(l *mock.Interface, _ *mock.EventSet) {
			l.InitFunc = func() nvml.Return { return nvml.ERROR_LIB_RM_VERSION_MISMATCH }
		},
		"listen for errors of GPUs: error 3": func(l *mock.Interface, _ *mock.EventSet) {
			l.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		},
		"count the GPUs: error 999": func(l *mock.Interface, _ *mock.EventSet) {
			l.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
		},
		"wait for errors of GPUs: error 999": func(_ *mock.Interface, s *mock.EventSet) {
			s.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_UNKNOWN }
		},
	} {
		c, err := New(fake(change))
		if err == nil {
			err = c.Watch(t.Context(), time.Minute, func(*gpu.Report) error { return nil })
		}
		assert.ErrorContains(t, err, want)
	}
}

// A lost GPU has no handle, and ends the wait for errors. The reports of the other GPUs continue.
func TestALostGPUKeepsTheOthersFromNothing(t *testing.T) {
	t.Parallel()
	c, err := New(fake(func(_ *mock.Interface, s *mock.EventSet) {
		s.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST }
	}))
	require.NoError(t, err)
	end := errors.New("enough")
	n := 0
	err = c.Watch(t.Context(), time.Millisecond, func(r *gpu.Report) error {
		assert.Empty(t, r.GPUs)
		assert.Equal(t, "13.1", r.CUDA)
		if n++; n == 3 {
			return end
		}
		return nil
	})
	require.ErrorIs(t, err, end)
}

// An event set with a lost GPU no longer receives errors of the other GPUs.
func TestErrorsOfOthersAreHeardAfterAGPUWasLost(t *testing.T) {
	t.Parallel()
	made := 0
	lost := &mock.Device{
		GetUUIDFunc:    func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST },
		GetPciInfoFunc: func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_GPU_IS_LOST },
	}
	lib := fake(func(l *mock.Interface, s *mock.EventSet) {
		l.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
			if made++; made == 1 {
				s.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST }
				return s, nvml.SUCCESS
			}
			told := false
			return &mock.EventSet{WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				if told {
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
				told = true
				return nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: 74, Device: lost}, nvml.SUCCESS
			}}, nvml.SUCCESS
		}
	})
	c, err := New(lib)
	require.NoError(t, err)
	c.watched["0000:01:00.0"] = true // in the first set
	lost.GetIndexFunc = func() (int, nvml.Return) { return 1, nvml.SUCCESS }
	c.buses[1] = "0000:02:00.0"
	end := errors.New("enough")
	err = c.Watch(t.Context(), time.Millisecond, func(r *gpu.Report) error {
		if len(r.Events) == 0 {
			return nil
		}
		assert.Equal(t, 74, r.Events[0].XID)
		assert.Equal(t, "0000:02:00.0", r.Events[0].Bus)
		return end
	})
	require.ErrorIs(t, err, end)
	assert.Equal(t, 2, made)
	assert.Empty(t, c.watched, "they are registered again with the next report")
}

// Drivers report each error only once.
func TestNoErrorIsLostWhereTheLibraryFails(t *testing.T) {
	t.Parallel()
	waits, counts := 0, 0
	c, err := New(fake(func(l *mock.Interface, s *mock.EventSet) {
		s.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
			if waits++; waits == 1 {
				return nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: 48}, nvml.SUCCESS
			}
			return nvml.EventData{}, nvml.ERROR_UNKNOWN
		}
		l.DeviceGetCountFunc = func() (int, nvml.Return) {
			if counts++; counts > 1 {
				return 0, nvml.ERROR_UNKNOWN
			}
			return 0, nvml.SUCCESS
		}
	}))
	require.NoError(t, err)
	var told []int
	err = c.Watch(t.Context(), time.Minute, func(r *gpu.Report) error {
		for _, e := range r.Events {
			told = append(told, e.XID)
		}
		return nil
	})
	require.Error(t, err)
	assert.Equal(t, []int{48}, told)
}

// A GPU may report errors faster than the program can read.
func TestErrorsWithoutEndAreToldInParts(t *testing.T) {
	t.Parallel()
	c, err := New(fake(func(_ *mock.Interface, s *mock.EventSet) {
		s.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
			return nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: 31}, nvml.SUCCESS
		}
	}))
	require.NoError(t, err)
	events, err := c.wait()
	require.NoError(t, err)
	assert.Len(t, events, mostEvents)
}

func TestTheRealLibraryIsLookedForWhereItIsSaidToBe(t *testing.T) {
	t.Parallel()
	_, err := New(nvml.New(nvml.WithLibraryPath("/nowhere/libnvidia-ml.so.1")))
	assert.ErrorContains(t, err, "it isn't installed")
}

func TestTheNearestNodeOfMemoryIsTheKernels(t *testing.T) {
	t.Parallel()
	one := int64(1)
	for text, want := range map[string]*int64{"1\n": &one, "-1\n": nil, "": nil, "many": nil} {
		c := &Collector{devices: t.TempDir()}
		dir := filepath.Join(c.devices, "0000:1b:00.0")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "numa_node"), []byte(text), 0o600))
		assert.Equal(t, want, c.numa("0000:1b:00.0"), text)
		assert.Nil(t, c.numa(""), "a lost GPU may have no address")
		assert.Nil(t, c.numa("0000:43:00.0"))
		c.simulated = gpu.SimulatedFiles
		assert.Nil(t, c.numa("0000:1b:00.0"), "a simulated GPU is in no slot")
	}
}
