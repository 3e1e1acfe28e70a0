package app

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/wire"
)

// busy is a Lister for a person with unfinished jobs.
type busy struct{ Lister }

func (busy) Unfinished(user string) (jobs, tasks int) {
	if user == "ann" {
		return 3, 90
	}
	return 0, 0
}

func TestOnePersonHasBoundedJobsAndTasks(t *testing.T) {
	s := &App{Lister: busy{}, Most: Most{Jobs: 4, Tasks: 100}}
	add := func(s *App, user string, jobs, tasks int) error {
		var more added
		defer more.done()
		return more.add(s, user, Most{jobs, tasks})
	}
	require.NoError(t, add(s, "ann", 1, 10))
	require.NoError(t, add(s, "bob", 1, 100))
	require.NoError(t, add(s, "ann", 0, 0), "what takes nothing is never refused")
	for text, more := range map[string]Most{
		"ann has 3 unfinished jobs and would have 5; one person may have 4":       {2, 0},
		"ann has 90 unfinished tasks and would have 101; one person may have 100": {1, 11},
	} {
		err := add(s, "ann", more.Jobs, more.Tasks)
		require.ErrorContains(t, err, text)
		var answer *wire.Error
		require.ErrorAs(t, err, &answer)
		require.Equal(t, 403, answer.Status)
	}
	require.NoError(t, add(&App{Lister: busy{}}, "ann", 1000, 100000), "without settings there is no bound")
}

func TestWhatIsUnderWayCountsUntilListsHaveIt(t *testing.T) {
	s := &App{Lister: busy{}, Most: Most{Jobs: 4, Tasks: 100}}
	var first, second added
	require.NoError(t, first.add(s, "ann", Most{1, 6}))
	require.ErrorContains(t, second.add(s, "ann", Most{1, 1}), "ann has 4 unfinished jobs and would have 5")
	require.ErrorContains(t, second.add(s, "ann", Most{Tasks: 5}), "ann has 96 unfinished tasks and would have 101")
	second.done() // nothing was added
	require.NoError(t, second.add(s, "bob", Most{4, 100}), "each person has a bound")
	first.done()
	first.done() // a second time changes nothing
	require.NoError(t, first.add(s, "ann", Most{1, 10}))
	first.done()
	second.done()
	assert.Empty(t, s.room.adding)
}
