package listing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
)

// "paictl job stop --all --keyword train" must not stop all jobs of the user trainer, or all jobs in the virtual cluster training. In lists, the
// keyword is compared with these names, too.
func TestTheKeywordOfAStopIsOfTheJobsName(t *testing.T) {
	o := &listing.Filter{User: "trainer", InName: "train"}
	assert.False(t, o.Selects(&listing.Row{Job: api.Job{User: "trainer", Name: "serve", VirtualCluster: "default"}}))
	o = &listing.Filter{User: "ann", InName: "train"}
	assert.False(t, o.Selects(&listing.Row{Job: api.Job{User: "ann", Name: "serve", VirtualCluster: "training"}}))
}
