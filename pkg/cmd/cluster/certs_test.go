package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/cluster"
)

func TestMachinesThatWereLeftBehindAreToldToCatchUp(t *testing.T) {
	opts := &CertsOptions{}
	opts.Flags.Dir = "./my cluster"
	assert.Equal(t, "paictl cluster certs rotate-ca -y", opts.goOn("paictl cluster certs rotate-ca -y"))
	opts.How = cluster.AuthorityOptions{Leave: true}
	assert.Equal(t, "paictl cluster certs rotate-ca --catch-up -p './my cluster'", opts.goOn("paictl cluster certs rotate-ca --leave-behind -y"))
}
