package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/cluster"
)

func TestTroublesShareALineAndSayWhatToDo(t *testing.T) {
	var out strings.Builder
	WriteTroubles(&out, []cluster.MachineStatus{
		{Host: "w1", State: cluster.StateOutside, Message: "not in the cluster", Hint: "paictl cluster up adds it to the cluster"},
		{Host: "w2", State: cluster.StateReady},
		{Host: "w3", State: cluster.StateOutside, Message: "not in the cluster", Hint: "paictl cluster up adds it to the cluster"},
		{Host: "w9", State: cluster.StateUnlisted, Message: "not in\nlayout.yaml\x1b[2J", Hint: "paictl node add w9=10.0.0.9"},
	})
	assert.Equal(t, `
w1, w3: not in the cluster
  -> paictl cluster up adds it to the cluster
w9: not in layout.yaml[2J
  -> paictl node add w9=10.0.0.9
`, out.String())
}
