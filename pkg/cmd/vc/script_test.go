package vc_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() { os.Exit(cmd.Main(context.Background(), cmdutil.New("v0.0.0-test"), os.Args[1:])) })
}

func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	c := kubetest.Start(t)
	require.NoError(t, c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	// A job waits in vision; no scheduler runs that could say so.
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
