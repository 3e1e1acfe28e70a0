package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
	"github.com/openpai/paictl/pkg/ui/tui"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got, "differs from %s", path)
}

// frames lists frames and the keys that open each frame.
var frames = []struct {
	name string
	keys []string
}{
	{"overview", nil},
	{"machines", []string{"2"}},
	{"machine", []string{"2", "enter"}},
	{"journal", []string{"2", "l"}},
	{"gpus_vc", []string{"3", "right", "right"}},
	{"gpus_user", []string{"3", "m"}},
	{"gpus_use", []string{"3", "m", "m"}},
	{"gpus_health", []string{"3", "M"}},
	{"vcs", []string{"4"}},
	{"vc", []string{"4", "enter"}},
	{"services", []string{"5"}},
	{"service", []string{"5", "enter"}},
	{"service_logs", []string{"5", "enter", "l"}},
	{"jobs", []string{"6"}},
	{"jobs_sorted", []string{"6", "o"}},
	{"job", []string{"6", "/", "running", "enter", "enter"}},
	{"logs", []string{"6", "/", "running", "enter", "enter", "l"}},
	{"why", []string{"6", "enter", "w"}},
	{"job_events", []string{"6", "enter", "e"}},
	{"alerts", []string{"7"}},
	{"alert", []string{"7", "enter"}},
	{"events", []string{"8"}},
	{"event", []string{"8", "enter"}},
	{"filter", []string{"6", "/", "running !alice"}},
	{"no_match", []string{"6", "/", "nobody", "enter"}},
	{"jump", []string{":", "gpu"}},
	{"stop", []string{"6", "/", "running", "enter", "x"}},
	{"undo", []string{"2", "c", "y"}},
	{"help", []string{"6", "?"}},
}

var sizes = [][2]int{{80, 24}, {120, 40}, {200, 60}}

// fits checks the size of a frame.
func fits(t *testing.T, frame string, w, h int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	assert.Len(t, lines, h)
	for _, l := range lines {
		assert.LessOrEqual(t, tui.Width(l), w, "%q", l)
	}
}

func TestEachScreenInEachSizeIsAsRecorded(t *testing.T) {
	for _, f := range frames {
		for _, s := range sizes {
			t.Run(fmt.Sprintf("%s_%dx%d", f.name, s[0], s[1]), func(t *testing.T) {
				t.Parallel()
				frame := drive(t, small(), s[0], s[1], monochrome()).keys(f.keys...).frame()
				assert.NotContains(t, frame, "\x1b", "NO_COLOR: nothing but text")
				fits(t, frame, s[0], s[1])
				golden(t, fmt.Sprintf("%s_%dx%d.golden", f.name, s[0], s[1]), frame+"\n")
			})
		}
	}
}

func TestScreensInColoursAreAsRecorded(t *testing.T) {
	for name, p := range map[string]tui.Palette{"dark": tui.NewPalette(tui.TrueColour, false), "light": tui.NewPalette(tui.TrueColour, true), "256": tui.NewPalette(tui.Colours256, false), "16": tui.NewPalette(tui.Colours16, false)} {
		for _, f := range frames {
			if f.name == "overview" || f.name == "gpus_vc" || f.name == "gpus_use" || f.name == "jobs" {
				frame := drive(t, small(), 80, 24, p).keys(f.keys...).frame()
				fits(t, frame, 80, 24)
				golden(t, fmt.Sprintf("colour_%s_%s.golden", name, f.name), frame+"\n")
			}
		}
	}
}

// Signs and letters carry the same information as colors. Without colors, a frame has the same text.
func TestColoursSayNothingThatSignsDoNot(t *testing.T) {
	for _, f := range frames {
		plain := drive(t, small(), 120, 40, monochrome()).keys(f.keys...).frame()
		coloured := drive(t, small(), 120, 40, tui.NewPalette(tui.TrueColour, false)).keys(f.keys...).frame()
		assert.Equal(t, trimmed(plain), trimmed(strip(coloured)), f.name)
	}
}

func trimmed(frame string) string {
	lines := strings.Split(frame, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func TestFramesFitAnyScreen(t *testing.T) {
	large := statustest.Cluster(statustest.Options{Seed: 3, Machines: 40, GPUs: 16, NotReady: 1, Outside: 1, SickGPUs: 3, VirtualClusters: 30, Jobs: 300, Services: 30, Broken: 3, Alerts: 40, Events: 100})
	for _, f := range frames {
		for _, s := range [][2]int{{20, 6}, {40, 10}, {79, 23}, {81, 25}, {300, 80}, {1, 1}, {80, 3}} {
			for name, c := range map[string]*status.Cluster{"nothing": statustest.Cluster(statustest.Options{}), "large": large} {
				d := drive(t, c, s[0], s[1], monochrome())
				for _, k := range f.keys {
					d.keys(k)
				}
				frame := d.frame()
				if !assert.Len(t, strings.Split(frame, "\n"), s[1], "%s of %s at %v", f.name, name, s) {
					continue
				}
				for _, l := range strings.Split(frame, "\n") {
					assert.LessOrEqual(t, tui.Width(l), s[0], "%s of %s at %v: %q", f.name, name, s, l)
				}
			}
		}
	}
}

func TestAStaleModelSaysHowOldItIs(t *testing.T) {
	o := statustest.Small()
	o.Stale = []string{status.SourceAPI}
	d := drive(t, statustest.Cluster(o), 100, 24, monochrome())
	since := statustest.Now.Add(-2 * time.Minute).Local().Format(time.TimeOnly)
	assert.Contains(t, d.frame(), "API server not reachable since "+since+" (2m05s), showing the last state; reconnecting")
	assert.Contains(t, d.line("! api"), "of 2m ago")
}

func TestBeforeTheFirstModelTheViewSaysSo(t *testing.T) {
	m := New(t.Context(), Options{Source: &fixed{changed: make(chan struct{})}, Palette: monochrome(), Now: func() time.Time { return statustest.Now }})
	m.Update(keyOf("j"))
	m.Update(keyOf(":"))
	assert.Contains(t, m.View(), "asking the cluster…")

	c := *small()
	c.Sources = append([]status.Source(nil), c.Sources...)
	c.Sources[2].State = status.StateLoading
	m.Update(changedMsg{&c})
	assert.Contains(t, strings.Split(m.View(), "\n")[0], "asking the cluster…", "and as long as a part is missing")
}

// Any string of the model may come from a user. No string may move the cursor or control the terminal.
func TestNothingInTheClusterControlsTheTerminal(t *testing.T) {
	c := small()
	evil := "\x1b[2J\x1b]0;title\a\r\n\u202e"
	poison(reflect.ValueOf(c), evil, map[any]bool{})
	for _, f := range frames {
		for _, s := range sizes[:2] {
			frame := drive(t, c, s[0], s[1], monochrome()).keys(f.keys...).frame()
			for _, bad := range []string{"\x1b", "\a", "\r", "\u202e"} {
				assert.NotContains(t, frame, bad, f.name)
			}
			assert.Len(t, strings.Split(frame, "\n"), s[1], f.name)
		}
	}
}

// poison appends text to each string of the model, except strings that the code compares.
func poison(v reflect.Value, evil string, seen map[any]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Interface()] {
			seen[v.Interface()] = true
			poison(v.Elem(), evil, seen)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if name == "Level" || name == "State" || name == "Health" || name == "Kind" {
				continue
			}
			poison(v.Field(i), evil, seen)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), evil, seen)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if v.Type().Elem().Kind() == reflect.String {
				v.SetMapIndex(k, reflect.ValueOf(v.MapIndex(k).String()+evil))
			}
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(v.String() + evil)
		}
	}
}

func TestOwnersOfGPUsAreSpelledOut(t *testing.T) {
	assert.Equal(t, "alice/train worker[3] in default, borrowed", ownerText(&status.GPU{Owner: &status.Owner{Job: "alice/train", Task: "worker[3]", VirtualCluster: "default", Opportunistic: true}}))
	assert.Equal(t, "pod kube-system/x", ownerText(&status.GPU{Owner: &status.Owner{Pod: "kube-system/x"}}))
	assert.Equal(t, "free, for ordinary pods", ownerText(&status.GPU{ForPods: true}))
}

func TestTheEndOfATaskIsSpelledOut(t *testing.T) {
	assert.Empty(t, endText(&job.Task{}))
}
