package gpu

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

type watched struct {
	mu      sync.Mutex
	reports int
	blind   []string
}

func (w *watched) seen() (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reports, strings.Join(w.blind, "\n")
}

// watch runs a shell script instead of the program and records its reports.
func watch(t *testing.T, script string, silence time.Duration) *watched {
	t.Helper()
	file := filepath.Join(t.TempDir(), "probe")
	runnable.Write(t, file, "#!/bin/sh\n"+script)
	w := &watched{}
	p := &Probe{Path: file, Silence: silence, Pause: 10 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Watch(ctx, func(*Report) { w.mu.Lock(); defer w.mu.Unlock(); w.reports++ }, func(err error) { w.mu.Lock(); defer w.mu.Unlock(); w.blind = append(w.blind, err.Error()) })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *watched) eventually(t *testing.T, is func(reports int, blind string) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return is(w.seen()) }, 30*time.Second, 5*time.Millisecond)
}

func TestAProbeThatEndsIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := watch(t, `echo '{"gpus":[]}'; echo "pai-nvml: the driver isn't loaded" >&2; exit 1`, time.Minute)
	w.eventually(t, func(reports int, blind string) bool {
		return reports >= 3 && strings.Count(blind, "the driver isn't loaded") >= 2
	})
	_, blind := w.seen()
	assert.NotContains(t, blind, "pai-nvml")
}

func TestAProbeThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	w := watch(t, `echo '{"gpus":[]}'; exec sleep 1000`, 300*time.Millisecond)
	w.eventually(t, func(reports int, blind string) bool {
		return reports >= 2 && strings.Contains(blind, "the driver hasn't answered for 300ms")
	})
}

func TestAProbeThatAnswersIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := watch(t, `while :; do echo '{"gpus":[]}'; sleep 0.05; done`, 2*time.Second)
	w.eventually(t, func(reports int, _ string) bool { return reports >= 20 })
	_, blind := w.seen()
	assert.Empty(t, blind)
}

func TestAProbeThatCantBeUsed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"no report":   {`echo hello; sleep 1000`, "is not a report"},
		"it ends":     {`exit 3`, "has ended: exit status 3"},
		"many words":  {fmt.Sprintf(`i=0; while [ $i -lt 300 ]; do echo "%s" >&2; i=$((i+1)); done; echo last >&2; exit 1`, strings.Repeat("x", 300)), "last"},
		"a long line": {`head -c 9000000 /dev/zero | tr '\0' 'x'; exit 1`, "token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watch(t, tt.script, time.Minute)
			w.eventually(t, func(_ int, blind string) bool { return strings.Contains(blind, tt.want) })
		})
	}
	w := &watched{}
	p := &Probe{Path: "/nowhere/pai-nvml", Silence: time.Minute, Pause: time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	go p.Watch(ctx, func(*Report) {}, func(err error) { w.mu.Lock(); defer w.mu.Unlock(); w.blind = append(w.blind, err.Error()) })
	w.eventually(t, func(_ int, blind string) bool { return strings.Contains(blind, "no such file") })
	cancel()
}

func TestTheTableOfErrors(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for _, x := range xids() {
		assert.False(t, seen[x.Code], "XID %d occurs twice", x.Code)
		seen[x.Code] = true
		assert.NotEmpty(t, x.Meaning)
		assert.Contains(t, []Action{None, Look, Reset, Restart}, x.Action)
	}
	assert.True(t, FindXID(79).BreaksGPU())
	assert.False(t, FindXID(13).BreaksGPU())
	assert.Equal(t, "XID 13: a program used the graphics engine incorrectly", FindXID(13).String())
	assert.Equal(t, "XID 7777: an unknown error", FindXID(7777).String())
}

func TestTheProgramStaysAwayWhileSomebodyHoldsIt(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	file := filepath.Join(t.TempDir(), "probe")
	running := filepath.Join(t.TempDir(), "running")
	runnable.Write(t, file, "#!/bin/sh\necho >"+running+"; trap 'rm "+running+"' EXIT\nwhile :; do echo '{}'; sleep 0.05; done")
	w := &watched{}
	p := &Probe{Path: file, Silence: time.Minute, Pause: 10 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Watch(ctx, func(*Report) { w.mu.Lock(); defer w.mu.Unlock(); w.reports++ }, func(err error) { w.mu.Lock(); defer w.mu.Unlock(); w.blind = append(w.blind, err.Error()) })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	for range 3 {
		before, _ := w.seen()
		w.eventually(t, func(reports int, _ string) bool { return reports > before })
		resume, err := p.Hold(t.Context())
		require.NoError(t, err)
		held, blind := w.seen()
		_, err = p.Hold(t.Context())
		require.ErrorContains(t, err, "another operation")
		assert.Never(t, func() bool { now, _ := w.seen(); return now > held }, 100*time.Millisecond, 10*time.Millisecond)
		assert.Empty(t, blind, "no one is told that nothing is known")
		resume()
	}
	w.eventually(t, func(reports int, _ string) bool { held, _ := w.seen(); return reports >= held })
}

func TestAHangingProgramIsntHeld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "probe")
	runnable.Write(t, file, "#!/bin/sh\nexec sleep 1000")
	p := &Probe{Path: file}
	p.gate.Lock() // as while it hangs
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Hold(ctx)
	require.ErrorContains(t, err, "the driver hangs")
	assert.True(t, p.isHeld())
	p.gate.Unlock()
	require.Eventually(t, func() bool { return !p.isHeld() }, 30*time.Second, 5*time.Millisecond, "it runs again once the driver answers")
}
