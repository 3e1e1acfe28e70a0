package config_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	forget(t)
	cmdtest.RunIn(t, "testdata/server", map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
}

// forget removes the configuration that another test stored in the API server.
func forget(t *testing.T) {
	t.Helper()
	c := kubetest.Start(t)
	for _, err := range []error{
		c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.Client.CoreV1().Secrets(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		require.NoError(t, err)
	}
}
