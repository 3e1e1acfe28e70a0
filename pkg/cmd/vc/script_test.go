package vc_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	c := kubetest.Start(t)
	require.NoError(t, c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	// A job waits in the virtual cluster vision, but no scheduler runs that could report the job.
	pods := c.Client.CoreV1().Pods("vc-jobs")
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vc-jobs"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Client.CoreV1().ServiceAccounts("vc-jobs").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	no := false
	_, err = pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train-0", Labels: map[string]string{v1.LabelVC: "vision"}, Annotations: map[string]string{
			annotation.SpecKey: "virtualCluster: vision\npriority: 0\nleafCellNumber: 1\naffinityGroup: {name: ann~train/default, members: [{podNumber: 1, leafCellNumber: 1}]}\n"}},
		Spec: corev1.PodSpec{SchedulerName: "pai-scheduler", AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "app", Image: "none"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	cmdtest.RunIn(t, "testdata/server", map[string]string{"KUBECONFIG": kubetest.Kubeconfig(t)})
}

// TestScriptsOfWhoHasSignedIn uses a server that shows the user one of two virtual clusters.
func TestScriptsOfWhoHasSignedIn(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	answer := map[string]any{
		"/v1/virtualclusters": api.VirtualClusters{Items: []api.VirtualCluster{{Name: "speech", Guaranteed: 8, Free: 8}, {Name: "vision", Cells: []api.Cells{{CellType: "G", CellNumber: 8}}, Guaranteed: 8, Used: 2, Free: 6, WaitingGangs: 1}}},
		"/v1/queue":           api.Queue{Total: 1, Items: []api.Queued{{Position: 1, PositionInVC: 1, VC: "vision", Group: "bob~next/default", State: "Waiting", Since: time.Now(), Pods: 1, User: "bob", Request: api.Request{GPUs: 8}}}},
	}
	s := servertest.Start(t, c, servertest.Options{Scheduler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(answer[r.URL.Path])
	})})
	s.Group("of-vision", func(g *peoplev1.GroupSpec) { g.VirtualClusters = []peoplev1.VCGrant{{Name: "vision"}} })
	s.Person("bob", "of-vision")
	home := t.TempDir()
	s.Login(home, "bob")
	cmdtest.RunIn(t, "testdata/signed", map[string]string{"XDG_CONFIG_HOME": home, "PAICTL_SERVER": "bob"})
}

// TestScriptsOfAnAdministratorWhoHasSignedIn uses a scheduler whose responses don't depend on the configuration.
func TestScriptsOfAnAdministratorWhoHasSignedIn(t *testing.T) {
	c := kubetest.Start(t)
	empty := func() { // Prepare creates the scheduler's ConfigMap again
		_ = c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	empty()
	servertest.Prepare(t, c)
	t.Cleanup(empty)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	answer := map[string]any{api.PathVirtualClusters: api.VirtualClusters{Generation: 2}, api.PathValidate: api.Validation{Valid: true}}
	s := servertest.Start(t, c, servertest.Options{Scheduler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(answer[r.URL.Path])
	})})
	s.Group("administrators", func(g *peoplev1.GroupSpec) { g.Administrator = true })
	s.Person("root", "administrators")
	s.Person("bob")
	home := t.TempDir()
	s.Login(home, "bob")
	s.Login(home, "root")
	cmdtest.RunIn(t, "testdata/administrator", map[string]string{"XDG_CONFIG_HOME": home, "PAICTL_SERVER": "root", "OPERATOR": kubetest.Kubeconfig(t)})
}

// TestScriptsOfWhoHasSignedInWithoutAScheduler uses a cluster that stores a configuration of the scheduler, but runs no scheduler.
func TestScriptsOfWhoHasSignedInWithoutAScheduler(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	s := servertest.Start(t, c, servertest.Options{Scheduler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})})
	s.Group("of-vision", func(g *peoplev1.GroupSpec) { g.VirtualClusters = []peoplev1.VCGrant{{Name: "vision"}} })
	s.Person("bob", "of-vision")
	home := t.TempDir()
	s.Login(home, "bob")
	cmdtest.RunIn(t, "testdata/down", map[string]string{"XDG_CONFIG_HOME": home, "PAICTL_SERVER": "bob"})
}
