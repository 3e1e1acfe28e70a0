package rules_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	c := kubetest.Start(t)
	require.NoError(t, store.EnsureNamespace(t.Context(), c.Client))
	require.NoError(t, c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	cmdtest.RunIn(t, "testdata/server", map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
}
