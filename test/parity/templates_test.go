package parity

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// The test uses templates through the server, as several people who see different templates, and directly with a kubeconfig.
func TestTemplatesAreKeptAndUsedBothWays(t *testing.T) {
	builtIn, err := template.BuiltIn()
	require.NoError(t, err)
	b := openWith(t, servertest.Options{History: http.HandlerFunc(history), Scheduler: http.HandlerFunc(scheduler), BuiltIn: builtIn})
	b.signIn("kim", "team")
	b.signIn("lee", "team")
	b.signIn("max", "default")
	b.signIn("root", "operators")
	cmdtest.RunFiles(t, []string{"testdata/templates.txtar"}, map[string]string{"XDG_CONFIG_HOME": b.home, "KUBECONFIG": "", "OPERATOR": b.kubeconfig})
}
