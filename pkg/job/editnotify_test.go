package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestAJobFileSelectsNotices(t *testing.T) {
	const set = "jobStatusChangeNotification: {running: true, failed: true}\n"
	for name, c := range map[string]struct{ file, want string }{
		"without extras":       {"name: a # mine\n", "name: a # mine\nextras:\n  " + set},
		"without a line end":   {"name: a", "name: a\nextras:\n  " + set},
		"with extras":          {"extras:\n    gang: false # why\nname: a\n", "extras:\n    " + set + "    gang: false # why\nname: a\n"},
		"with a selection":     {"extras:\n  jobStatusChangeNotification:\n    running: false\n    retried: true\n  gang: false\n", "extras:\n  " + set + "  gang: false\n"},
		"in one line":          {"extras:\n  jobStatusChangeNotification: {succeeded: true}\nname: a\n", "extras:\n  " + set + "name: a\n"},
		"empty extras":         {"extras: {} # why\nname: a\n", "extras: # why\n  " + set + "name: a\n"},
		"extras without value": {"name: a\nextras:\n", "name: a\nextras:\n  " + set},
		"no value, a comment":  {"extras: # why\nname: a\n", "extras: # why\n  " + set + "name: a\n"},
		"null extras":          {"extras: null\nname: a\n", "extras:\n  " + set + "name: a\n"},
		"extras in one line":   {"extras: {gang: false}\n", ""},
		"as JSON":              {`{"name": "a"}`, ""},
		"with two documents":   {"name: a\n---\nname: b\n", ""},
		"with a name by alias": {"name: &a x\nextras: *a\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := SetNotify("job.yaml", []byte(c.file), []v1.NotifyState{v1.NotifyRunning, v1.NotifyFailed})
			if c.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, string(out))
		})
	}
	out, err := SetNotify("job.yaml", []byte("name: a\n"), nil)
	require.NoError(t, err)
	assert.Equal(t, "name: a\nextras:\n  jobStatusChangeNotification: {}\n", string(out))
}
