package parity

import (
	"testing"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
)

// Templates by the server, for people who see different ones, and past it by a kubeconfig.
func TestTemplatesAreKeptAndUsedBothWays(t *testing.T) {
	b := open(t)
	b.signIn("kim", "team")
	b.signIn("lee", "team")
	b.signIn("max", "default")
	b.signIn("root", "operators")
	cmdtest.RunFiles(t, []string{"testdata/templates.txtar"}, map[string]string{"XDG_CONFIG_HOME": b.home, "KUBECONFIG": "", "OPERATOR": b.kubeconfig})
}
