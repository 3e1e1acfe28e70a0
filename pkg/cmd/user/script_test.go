package user_test

import (
	"context"
	"os"
	"testing"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

// The scripts share one cluster and run in alphabetical order. The first script needs a cluster without users.
func TestScriptsOnAServer(t *testing.T) {
	cmdtest.RunIn(t, "testdata/server", map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
}
