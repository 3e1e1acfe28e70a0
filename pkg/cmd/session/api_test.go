package session

import (
	"testing"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

func TestAnAddressOfTheClusterLeadsToIt(t *testing.T) {
	c := &config.Cluster{}
	c.Kubernetes.Kubernetes.APIEndpoint = "local"
	s := &engine.Spec{Config: c, Nodes: []*engine.Node{{Machine: layout.Machine{HostIP: "10.0.0.1"}, ControlPlane: true}, {Machine: layout.Machine{HostIP: "10.0.0.2"}}}}
	for server, leads := range map[string]bool{
		"https://10.0.0.1:6443":  true,
		"https://10.0.0.2:6443":  false,
		"https://10.0.0.50:6443": false,
		"https://:6443":          false,
		"":                       false,
	} {
		assert.Equal(t, leads, LeadsTo(server, s), server)
	}
	c.Kubernetes.Kubernetes.APIVIP = "10.0.0.50"
	assert.True(t, LeadsTo("https://10.0.0.50:6443", s))
	assert.False(t, LeadsTo("https://10.0.0.51:6443", s))
}
