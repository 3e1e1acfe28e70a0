package protocol

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse checks that no text makes Parse panic, that every finding has a position and a message, and that an accepted job can be masked and
// parsed again.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{small, command("<% $parameters.list[1] %>"), role("exec: [a, <% $secrets.p %>]"), extras("storages: []"),
		small + "secrets: &a {b: *a}\n", small + "parameters: {a: [*x]}\n", "\x00", "a: !!binary x", "? [a]\n: b\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, findings := Parse("job.yaml", data)
		for _, one := range findings {
			require.Positive(t, one.Line, one.String())
			require.NotEmpty(t, one.Rule)
			require.NotEmpty(t, one.Message)
		}
		if findings.Err() != nil {
			require.Nil(t, j)
			return
		}
		objects := map[string]bool{}
		for _, r := range j.Roles {
			require.Regexp(t, `^[a-z0-9]{1,50}$`, r.Object)
			require.False(t, objects[r.Object])
			objects[r.Object] = true
			require.Positive(t, r.Instances)
		}
		shown, err := j.WithoutSecrets()
		require.NoError(t, err)
		require.Len(t, shown.Roles, len(j.Roles))
	})
}
