package spec_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

func valid() *spec.Spec {
	return &spec.Spec{
		Version: 1, Framework: "f", User: "alice", Job: "j",
		Roles: []spec.Role{
			{Name: "ps_server", Object: "psserver", Instances: 2, Command: "echo s3cret", Ports: []spec.Port{{Label: "ssh", Count: 1}}},
			{Name: "Worker", Object: "worker", Instances: 3, Exec: []string{"true"}},
		},
	}
}

func encode(t testing.TB, s *spec.Spec) []byte {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	return data
}

func TestASpecIsReadBackAsItWasWritten(t *testing.T) {
	want := valid()
	want.Code = &spec.Code{URL: "http://x/y", SHA256: "00", Size: 3, Dir: "/code"}
	got, err := spec.Decode(encode(t, want))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, 5, got.Tasks())
	assert.Equal(t, 1, got.Role("worker"))
	assert.Equal(t, -1, got.Role("Worker"), "roles are found by their name in the Framework")
}

func TestASpecThatCannotBeRunIsRefusedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.Spec)
		want   string
	}{
		"another version":        {func(s *spec.Spec) { s.Version = 2 }, "version 2"},
		"no user":                {func(s *spec.Spec) { s.User = "" }, "has no user"},
		"no roles":               {func(s *spec.Spec) { s.Roles = nil }, "no roles"},
		"a role twice":           {func(s *spec.Spec) { s.Roles[1].Object = "psserver" }, "twice"},
		"a name with a quote":    {func(s *spec.Spec) { s.Roles[0].Name = "a'b" }, "letters, digits"},
		"an object name":         {func(s *spec.Spec) { s.Roles[0].Object = "ps_server" }, "object name"},
		"a port label":           {func(s *spec.Spec) { s.Roles[0].Ports[0].Label = "a-b" }, "port label"},
		"a label twice":          {func(s *spec.Spec) { s.Roles[0].Ports = append(s.Roles[0].Ports, s.Roles[0].Ports[0]) }, "twice"},
		"too many ports":         {func(s *spec.Spec) { s.Roles[0].Ports[0].Count = 1 << 30 }, "ports of label"},
		"negative instances":     {func(s *spec.Spec) { s.Roles[0].Instances = -1 }, "instances"},
		"millions of tasks":      {func(s *spec.Spec) { s.Roles[0].Instances = 99_999; s.Roles[1].Instances = 99_999 }, "more than"},
		"nothing to run":         {func(s *spec.Spec) { s.Roles[0].Command = "" }, "neither commands nor a program"},
		"a program with no name": {func(s *spec.Spec) { s.Roles[1].Exec = []string{""} }, "no name"},
		"a relative folder":      {func(s *spec.Spec) { s.Code = &spec.Code{Dir: "code"} }, "absolute folder"},
		"ports that end first":   {func(s *spec.Spec) { s.PortStart, s.PortEnd = 20000, 10000 }, "not a range"},
		"a negative time":        {func(s *spec.Spec) { s.GracePeriodSec = -1 }, "negative time"},
	} {
		t.Run(name, func(t *testing.T) {
			s := valid()
			c.change(s)
			_, err := spec.Decode(encode(t, s))
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

func TestWhatThisRuntimeDoesNotKnowIsRefusedByName(t *testing.T) {
	data := strings.Replace(string(encode(t, valid())), `"gang"`, `"newFeature":true,"gang"`, 1)
	_, err := spec.Decode([]byte(data))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "newFeature")
}

func TestNoErrorShowsACommand(t *testing.T) {
	whole := string(encode(t, valid()))
	for i := range whole {
		if _, err := spec.Decode([]byte(whole[:i])); assert.Error(t, err, "cut at %d", i) {
			assert.NotContains(t, err.Error(), "s3cret")
		}
	}
	_, err := spec.Decode([]byte(strings.Replace(whole, `"instances":2`, `"instances":"s3cret"`, 1)))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "s3cret")
	assert.Contains(t, err.Error(), "instances")
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	_, err := spec.Load(filepath.Join(t.TempDir(), "spec.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	name := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(name, []byte("{"), 0o600))
	_, err = spec.Load(name)
	require.ErrorContains(t, err, name)
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, valid()))
	f.Add([]byte(`{"version":1,"roles":[{}]}`))
	f.Add([]byte(`{"version":1e9}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := spec.Decode(data)
		if err != nil {
			return
		}
		again, err := spec.Decode(encode(t, s))
		require.NoError(t, err)
		assert.Equal(t, s.Tasks(), again.Tasks())
	})
}
