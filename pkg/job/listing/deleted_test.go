package listing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestADeletedJobDoesNotLookUndeleted(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	for name, f := range map[string]*v1.Framework{
		"not taken up": {ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x"}},
		"running":      framework("ann", "vision", "a", "a", 1, v1.AttemptRunning, 0),
		"succeeded":    framework("ann", "vision", "b", "b", 1, v1.Completed, 0),
	} {
		f.DeletionTimestamp = &now
		b := listing.NewBrief(f)
		row := b.Row(b.State(nil, false, 0))
		assert.Equal(t, "deleting", row.State, name)
		assert.Equal(t, "deleting", row.At().Text(now.Time), name)
		assert.True(t, row.Deleted, name)
	}
	f := framework("ann", "vision", "b", "b", 1, v1.Completed, 0)
	assert.False(t, api.Summary(f).Deleted)
	f.DeletionTimestamp = &now
	row := listing.NewArchivedRow(api.Summary(f))
	assert.Equal(t, "succeeded", row.State, "filters find it where it was")
	assert.Equal(t, "succeeded (deleted)", row.At().Text(now.Time))
	f.Annotations[v1.AnnotationExpired] = "true"
	row = listing.NewArchivedRow(api.Summary(f))
	assert.Equal(t, "succeeded", row.At().Text(now.Time), "the controller's own deletion isn't someone's")

	x := listing.NewIndex()
	f.Labels[v1.LabelUser], f.Annotations[v1.AnnotationExpired] = "ann", ""
	x.Put(listing.NewBrief(f))
	jobs, tasks := x.Unfinished("ann")
	assert.Zero(t, jobs+tasks, "it has finished")
}
