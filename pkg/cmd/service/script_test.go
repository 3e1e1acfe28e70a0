package service_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	forget(t)
	cmdtest.RunIn(t, "testdata/server", map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
}

func TestScriptsOfAnAdministratorWhoSignedIn(t *testing.T) {
	forget(t)
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	// The namespace of jobs must have the annotations that an earlier "service start" would have added, so that the start in the script adopts
	// it.
	_, err := c.Client.CoreV1().Namespaces().Patch(t.Context(), kube.JobNamespace, types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"},`+
		`"annotations":{"meta.helm.sh/release-name":"cluster-configuration","meta.helm.sh/release-namespace":"pai-system"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	s := servertest.Start(t, c, servertest.Options{})
	s.Group("administrators", func(g *peoplev1.GroupSpec) { g.Administrator = true })
	s.Person("root", "administrators")
	s.Person("bob")
	home := t.TempDir()
	s.Login(home, "bob")
	s.Login(home, "root")
	cmdtest.RunIn(t, "testdata/administrator", map[string]string{"XDG_CONFIG_HOME": home, "PAICTL_SERVER": "root", "OPERATOR": kubetest.Kubeconfig(t)})
}

// forget removes the objects of other tests from the API server.
func forget(t *testing.T) {
	t.Helper()
	c := kubetest.Start(t)
	for _, err := range []error{
		c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.Client.CoreV1().Secrets(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		require.NoError(t, err)
	}
	definitions := dynamic.NewForConfigOrDie(c.Config).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	require.NoError(t, definitions.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.Eventually(t, func() bool {
		left, err := definitions.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(left.Items) == 0
	}, time.Minute, 20*time.Millisecond)
}

func TestASecondRunIsRefusedWithItsOwnCode(t *testing.T) {
	forget(t)
	c := kubetest.Start(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/q.yaml", []byte("machines: [10.0.0.1]\nssh-password: x\n"), 0o600))
	paictl := func(args ...string) (int, string) {
		f := cmdutil.New("v0.0.0-test")
		io, _, _, errOut := iostreams.Test()
		f.IO = io
		return cmd.Main(t.Context(), f, args), errOut.String()
	}
	code, said := paictl("config", "generate", "-i", dir+"/q.yaml", "-o", dir+"/c", "--offline")
	require.Zero(t, code, said)
	code, said = paictl("config", "push", "-p", dir+"/c", "--yes", "--kubeconfig", kubetest.Kubeconfig(t))
	require.Zero(t, code, said)

	other := services.Process{User: "ann", Host: "elsewhere", PID: 7}
	_, release, err := services.NewLock(c.Client, other, "paictl service stop -n grafana", time.Now).Hold(t.Context())
	require.NoError(t, err)
	code, said = paictl("service", "start", "--kubeconfig", kubetest.Kubeconfig(t))
	assert.Equal(t, cmdutil.ExitLocked, code)
	assert.Contains(t, said, `another run changes the services of this cluster: ann@elsewhere, pid 7, "paictl service stop -n grafana", since 20`)
	assert.Contains(t, said, "-> wait for it to end")
	code, said = paictl("service", "start", "--dry-run", "--kubeconfig", kubetest.Kubeconfig(t))
	assert.Zero(t, code, "who only looks needs no lock: %s", said)
	release()
}
