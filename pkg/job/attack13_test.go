package job

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/framework/api"
)

// "paictl job stop --all --keyword train" says "only those with this in the name", and stops all jobs of the user
// trainer, or of the virtual cluster training: the filter of lists looks at those names, too.
func TestAttack13TheKeywordOfAStopIsOfTheJobsName(t *testing.T) {
	o := &Filter{User: "trainer", Keyword: "train"}
	assert.False(t, o.fits(&Row{Job: api.Job{User: "trainer", Name: "serve", VirtualCluster: "default"}}))
	o = &Filter{User: "ann", Keyword: "train"}
	assert.False(t, o.fits(&Row{Job: api.Job{User: "ann", Name: "serve", VirtualCluster: "training"}}))
}
