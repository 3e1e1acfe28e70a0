package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// --notify writes the states of the job protocol into the file, and rejects notices that have no state in the protocol.
func TestNoticesOfAJob(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		want  string // of the selection; "" is an error
		says  string
	}{
		"our words":            {[]string{"started", "finished", "failed"}, "{running: true, succeeded: true, failed: true}", ""},
		"the protocol's words": {[]string{"running", "retried", "running"}, "{running: true, retried: true}", ""},
		"none":                 {[]string{"none"}, "{}", ""},
		"none and another":     {[]string{"none", "failed"}, "", "write none alone"},
		"without a word":       {[]string{"preempted"}, "", "paictl notify set --add preempted"},
		"unknown":              {[]string{"idle"}, "", "write started, finished, failed, stopped, retried or none"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Source{Notify: c.words}
			err := s.check()
			if c.want == "" {
				assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
				assert.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			out, err := s.change("job.yaml", []byte("name: a\n"))
			require.NoError(t, err)
			assert.Equal(t, "name: a\nextras:\n  jobStatusChangeNotification: "+c.want+"\n", string(out))
		})
	}
}
