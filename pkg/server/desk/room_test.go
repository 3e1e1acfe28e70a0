package desk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/wire"
)

// busy has a person with unfinished jobs.
type busy struct{ Lister }

func (busy) Unfinished(user string) (jobs, tasks int) {
	if user == "ann" {
		return 3, 90
	}
	return 0, 0
}

func TestOnePersonHasBoundedJobsAndTasks(t *testing.T) {
	s := &Shop{Live: busy{}, Most: Most{Jobs: 4, Tasks: 100}}
	require.NoError(t, s.room("ann", 1, 10))
	require.NoError(t, s.room("bob", 1, 100))
	require.NoError(t, s.room("ann", 0, 0), "what takes nothing is never refused")
	for text, more := range map[string]Most{
		"ann has 3 unfinished jobs and would have 5; one person may have 4":       {2, 0},
		"ann has 90 unfinished tasks and would have 101; one person may have 100": {1, 11},
	} {
		err := s.room("ann", more.Jobs, more.Tasks)
		require.ErrorContains(t, err, text)
		var answer *wire.Error
		require.ErrorAs(t, err, &answer)
		require.Equal(t, 403, answer.Status)
	}
	require.NoError(t, (&Shop{Live: busy{}}).room("ann", 1000, 100000), "without settings there is no bound")
}
