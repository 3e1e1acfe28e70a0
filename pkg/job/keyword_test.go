package job

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/framework/api"
)

// "paictl job stop --all --keyword train" must not stop all jobs of the user trainer, or of the virtual cluster
// training: the filter of lists looks at those names, too.
func TestTheKeywordOfAStopIsOfTheJobsName(t *testing.T) {
	o := &Filter{User: "trainer", InName: "train"}
	assert.False(t, o.fits(&Row{Job: api.Job{User: "trainer", Name: "serve", VirtualCluster: "default"}}))
	o = &Filter{User: "ann", InName: "train"}
	assert.False(t, o.fits(&Row{Job: api.Job{User: "ann", Name: "serve", VirtualCluster: "training"}}))
}
