package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/scheduler/sim"
)

// example is a file in testdata/examples: a cluster, and steps with the required fields of their answers, such as {want: bind}.
// A text that begins with ~ is a regular expression.
type example struct {
	About string `yaml:"about"`
	// Config is in HiveD's format. It may be missing if the steps contain configurations.
	Config string           `yaml:"config"`
	Steps  []map[string]any `yaml:"steps"`
	// If Restart is false, the test doesn't restart the scheduler after the last step. A restart must not change the state.
	Restart *bool `yaml:"restart"`
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/examples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { runExample(t, file) })
	}
}

func runExample(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var e example
	require.NoError(t, yaml.Unmarshal(data, &e))
	require.NotEmpty(t, e.About)
	var wants []any
	for _, s := range e.Steps {
		wants = append(wants, s["want"])
		delete(s, "want")
	}
	restart := e.Restart == nil || *e.Restart
	if restart {
		e.Steps = append(e.Steps, map[string]any{"op": "inspect"}, map[string]any{"op": "start"}, map[string]any{"op": "inspect"})
	}
	lines := replayed(t, e)
	for i, want := range wants {
		if s, ok := want.(string); ok {
			want = map[string]any{"result": s}
		}
		name := fmt.Sprintf("step %d: %v", i+1, e.Steps[i])
		if want != nil && !holds(lines[i], want) {
			t.Errorf("%s\nwant %v\ngot  %s", name, want, compact(lines[i]))
		}
		assert.NotContains(t, lines[i], "violation", name)
		if text, _ := lines[i]["reason"].(string); strings.Contains(text, "panicked") {
			t.Errorf("%s\n%s", name, text)
		}
	}
	if restart {
		n := len(lines)
		assert.NotContains(t, lines[n-2], "lost")
		was, is := allocated(lines[n-3], lines[n-1])
		assert.Equal(t, was, is, "gangs before and after a restart")
	}
}

// replayed runs the steps, and checks the scheduler's state after each step. It returns the answers.
func replayed(t *testing.T, e example) []map[string]any {
	t.Helper()
	steps, err := json.Marshal(e.Steps)
	require.NoError(t, err)
	o := sim.ReplayOptions{Verify: true, ReadFile: os.ReadFile}
	if e.Config != "" {
		o.Config = &sim.Source{Name: "example.yaml", Data: []byte(e.Config)}
	}
	var out []map[string]any
	require.NoError(t, sim.Replay(t.Context(), "-", steps, o, func(l *sim.Line) error {
		b, err := json.Marshal(l)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(b, &m))
		out = append(out, m)
		return nil
	}))
	return out
}

// allocated returns the running gangs in two answers, before and after a restart. It omits details that a restart may drop:
// preempting gangs, and the temporary changes that preempting gangs caused.
func allocated(before, after map[string]any) (was, is []string) {
	wanted, preempting := map[string]bool{}, map[string]bool{}
	for _, g := range before["groups"].([]any) {
		g := g.(map[string]any)
		preempting[fmt.Sprint(g["vc"], "/", g["name"])] = g["state"] == "Preempting"
	}
	for _, line := range []map[string]any{before, after} {
		out := []string{}
		for _, g := range line["groups"].([]any) {
			g := g.(map[string]any)
			name := fmt.Sprint(g["vc"], "/", g["name"])
			wanted[name] = wanted[name] || g["state"] == "BeingPreempted" || preempting[fmt.Sprint(g["preemptor"])]
			if g["state"] == "Preempting" {
				continue
			}
			for _, key := range []string{"state", "preemptingPods", "preemptor", "order", "status"} {
				delete(g, key)
			}
			if wanted[name] {
				delete(g, "downgraded")
				delete(g, "virtualPlacement")
			}
			out = append(out, compact(g))
		}
		was, is = is, out
	}
	return was, is
}

// holds reports whether got contains all fields of want. Lists must have equal lengths.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		for key, w := range want {
			if !ok || !holds(m[key], w) {
				return false
			}
		}
		return ok
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !holds(list[i], want[i]) {
				return false
			}
		}
		return true
	case string:
		if pattern, ok := strings.CutPrefix(want, "~"); ok {
			return regexp.MustCompile(pattern).MatchString(fmt.Sprint(got))
		}
	case nil:
		return got == nil
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}

func compact(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
