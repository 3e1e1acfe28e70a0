package parity

import (
	"testing"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// This test must run last, because it leaves virtual clusters and jobs in the API server that the tests share.
func TestAFolderOfCodeGoesAlong(t *testing.T) {
	cluster := kubetest.Start(t)
	servertest.Prepare(t, cluster)
	server, home := servertest.Start(t, cluster, servertest.Options{}), t.TempDir()
	server.Group("coders", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "vision"}} })
	for _, name := range []string{"kim", "lee"} {
		server.Person(name, "coders")
		server.Login(home, name)
	}
	cmdtest.RunFiles(t, []string{"testdata/code.txtar"}, map[string]string{"XDG_CONFIG_HOME": home})
}
