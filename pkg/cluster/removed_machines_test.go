package cluster

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// TestARemovedMachinesCredentialsMakeNoNode sends requests to a real API server like the kubelets of two machines. One of the machines was removed.
func TestARemovedMachinesCredentialsMakeNoNode(t *testing.T) {
	kubetest.Start(t)
	admin, err := clientcmd.BuildConfigFromFlags("", kubetest.Kubeconfig(t))
	require.NoError(t, err)
	api := kubernetes.NewForConfigOrDie(admin)
	for _, doc := range bytes.Split(removedMachines, []byte("\n---\n")) {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		require.NoError(t, err)
		switch o := obj.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			_, err = api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), o, metav1.CreateOptions{})
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_, err = api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), o, metav1.CreateOptions{})
		default:
			t.Fatalf("%T", obj)
		}
		require.NoError(t, err)
	}
	kubelet := func(node string) *kubernetes.Clientset {
		who := rest.CopyConfig(admin)
		who.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
		return kubernetes.NewForConfigOrDie(who)
	}
	register := func(node string) error {
		_, err := kubelet(node).CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
		return err
	}
	require.NoError(t, register("stays"), "no machine was removed yet")
	lists := api.CoreV1().ConfigMaps("kube-system")
	_, err = lists.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "paictl-removed"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = lists.Patch(t.Context(), "paictl-removed", "application/merge-patch+json", []byte(`{"data":{"gone.1":"2026-11-27T10:00:00Z"}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	// The API server loads the list for the policy after a moment.
	require.Eventually(t, func() bool {
		err = register("gone.1")
		if err == nil {
			require.NoError(t, api.CoreV1().Nodes().Delete(t.Context(), "gone.1", metav1.DeleteOptions{}))
		}
		return apierrors.IsForbidden(err)
	}, 30*time.Second, 200*time.Millisecond)
	require.ErrorContains(t, err, "this machine was removed from the cluster at 2026-11-27T10:00:00Z; to take it back: paictl node add")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "gone.1", Namespace: "kube-node-lease"}}
	_, err = kubelet("gone.1").CoordinationV1().Leases("kube-node-lease").Create(t.Context(), lease, metav1.CreateOptions{})
	assert.True(t, apierrors.IsForbidden(err) || apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, register("comes"), "others are nodes as before")

	_, err = lists.Patch(t.Context(), "paictl-removed", "application/merge-patch+json", []byte(`{"data":{"gone.1":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return register("gone.1") == nil }, 30*time.Second, 200*time.Millisecond, "it was added again")
}

func TestAMachineThatWasRemovedWhileItWasOffIsRefusedUntilItIsAdded(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.made()
	l.forgetCalls()
	w1 := l.host("w1")
	w1.server.Close()
	o, left := l.removeNodes(t.Context(), RemoveOptions{}, "w1")
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"w1"}, left)
	calls := l.host("m1").calls()
	assert.Equal(t, []string{
		"kubectl apply -f -", "kubectl create configmap -n kube-system paictl-removed", "kubectl patch configmap paictl-removed w1",
		"kubectl patch configmap paictl-machines w1", "kubectl delete node w1 --ignore-not-found --timeout=60s",
	}, calls[len(calls)-5:], "it can't make its node again in between")

	w1.server = sshtest.NewServer(t, sshtest.Config{Name: "w1", Handler: w1})
	l.forgetCalls()
	l.mustUp()
	assert.Contains(t, l.host("m1").calls(), "kubectl patch configmap paictl-removed w1")
	barred, err := os.ReadFile(l.cluster + "/objects/paictl-removed")
	require.NoError(t, err)
	assert.Empty(t, string(barred))
	assert.Empty(t, lines(l.mustUp().changes))
}
