package job

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/job"
)

func TestAJobThatIsGoneIsNotSaidToHaveRunUntilThatWasFound(t *testing.T) {
	started, found := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	row := job.Row{Job: api.Job{Name: "train", User: "ann", State: api.Deleted, Phrase: api.PhraseGone, Submitted: started, Started: &started, Completed: &found}}
	now := found.Add(time.Hour)
	var out bytes.Buffer
	require.NoError(t, writePage(&out, &cmdutil.Output{}, &job.Detail{Row: row}, now, false))
	assert.Regexp(t, `(?m)^State +deleted$`, out.String())
	assert.Regexp(t, `(?m)^Found missing +.*\(1h ago\)$`, out.String())
	assert.Contains(t, out.String(), "why: paictl job why train")
	table := (&ListOptions{Columns: []string{"state", "duration", "exit"}}).table(&job.Page{Items: []job.Row{row}}, now)
	assert.Equal(t, []string{"deleted", "-", "FrameworkGone"}, table.Rows[0])
}
