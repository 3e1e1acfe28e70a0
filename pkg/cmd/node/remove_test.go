package node

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/cluster"
)

func TestWhoIsAskedKnowsWhichDataStays(t *testing.T) {
	assert.Empty(t, whatStays(nil, nil))
	assert.Equal(t, "warning: could not check whether services store data on these machines: no route\n", whatStays(nil, errors.New("no route")))
	got := whatStays([]cluster.Data{{Host: "w1", Volume: "pai-prometheus", Folder: "/datastorage/prometheus/data", Of: "prometheus"}}, nil)
	assert.Equal(t, `warning: this data is not moved; it stays in its folders, and the cluster can no longer use it:
  prometheus: /datastorage/prometheus/data on w1 (volume pai-prometheus)
  -> to move it: "Moving data" in docs/storage.md, before you remove the machine
`, got)
}
