package archive_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestTheHistoryKeepsWhichJobAJobWasClonedFrom(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		from := &v1.ClonedFrom{User: "bob", Name: "train", UID: "u1", VirtualCluster: "speech", Submitted: epoch}
		text, err := from.Text()
		require.NoError(t, err)
		for name, annotation := range map[string]string{"copy": text, "original": "", "forged": "{nothing", "empty": "{}"} {
			f := end(run(job("ann", name, 0, 1), 0, 10), 0, 20, false)
			f.Annotations[v1.AnnotationClonedFrom] = annotation
			require.NoError(t, s.SaveJob(t.Context(), f))
			got, err := s.Job(t.Context(), f.Name)
			require.NoError(t, err)
			if name == "copy" {
				assert.Equal(t, from, got.ClonedFrom)
			} else {
				assert.Nil(t, got.ClonedFrom, name)
			}
		}
		if p.DSN != "" {
			return // a database server exports nothing
		}
		other := sqlitePlace(t).open(t)
		_, err = importInto(t, other, exportOf(t, s))
		require.NoError(t, err)
		got, err := other.Job(t.Context(), v1.ObjectName("ann", "copy"))
		require.NoError(t, err)
		assert.Equal(t, from, got.ClonedFrom, "an import keeps it")
	})
}
