package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/answer"
	csrapprover "github.com/openpai/paictl/pkg/cluster/approver"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

const servingFile = "/var/lib/kubelet/pki/kubelet-server-current.pem"

// olderLab returns a cluster whose kubelets still sign their own certificates.
func olderLab(t *testing.T, masters, workers int) *lab {
	t.Helper()
	l := newLab(t, masters, workers)
	l.conf.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"serverTLSBootstrap": false}
	l.made()
	assert.NoFileExists(t, l.cluster+"/objects/approver")
	for _, h := range l.hosts {
		assert.NoFileExists(t, h.root+servingFile)
	}
	l.conf.Kubernetes.Kubernetes.Extra.Kubelet = nil
	l.forgetCalls()
	return l
}

func (l *lab) mustUpOf(host string) *outcome {
	l.t.Helper()
	o := l.up(l.t.Context(), limited(host))
	require.NoError(l.t, o.err, "%s", l.story(o))
	return o
}

func TestAClusterWhoseOperatorWantsItSignsNoKubeletsCertificates(t *testing.T) {
	t.Parallel()
	l := olderLab(t, 1, 1)
	l.conf.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"serverTLSBootstrap": false}
	assert.Empty(t, lines(l.mustUp().changes))
	assert.NotContains(t, l.host("m1").read("/etc/paictl/kubeadm.yaml"), "kubelet-certificate-authority")
}

func TestAnOlderClusterIsMovedByAWholeRun(t *testing.T) {
	t.Parallel()
	l := olderLab(t, 2, 3)
	l.mustUpOf("w1")
	assert.NoFileExists(t, l.cluster+"/objects/approver", "part of the machines can't be moved alone")
	assert.NotContains(t, l.host("w1").read(phases.KubeletDropIn), "serverTLSBootstrap")

	o := l.mustUp()
	var order []string
	for _, e := range o.events {
		if e.Kind == engine.EventPhaseDone || e.Kind == engine.EventPhaseStarted {
			order = append(order, e.Kind+" "+e.Host+" "+e.Phase)
		}
	}
	at := func(kind, host, phase string) int {
		i := slices.Index(order, kind+" "+host+" "+phase)
		require.GreaterOrEqual(t, i, 0, "%s %s %s in\n%s", kind, host, phase, strings.Join(order, "\n"))
		return i
	}
	for _, h := range l.hosts {
		assert.Less(t, at(engine.EventPhaseDone, "m1", engine.PhaseApprover), at(engine.EventPhaseStarted, h.name, phases.PhaseKubelet), h.name)
		assert.Less(t, at(engine.EventPhaseDone, h.name, phases.PhaseKubelet), at(engine.EventPhaseStarted, "m1", engine.PhaseInit), "API servers verify last")
		assert.FileExists(t, h.root+servingFile)
	}
	for _, m := range []string{"m1", "m2"} {
		assert.Contains(t, l.host(m).read("/etc/kubernetes/manifests/kube-apiserver.yaml"), "--kubelet-certificate-authority=")
	}
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAKubeletWhoseRequestIsDeniedIsNamedWithTheReason(t *testing.T) {
	t.Parallel()
	l := olderLab(t, 1, 3)
	const why = "10.9.0.77: not an address of w1, which has 10.9.0.2"
	l.host("w1").write("/.fake/fail/serving", "2026-11-27T10:00:00Z\tcsr-abcde\tDenied\t\""+why+"\"\n")
	o := l.up(t.Context())
	f := failures(t, o, 3)["w1"]
	assert.Contains(t, f.Error, "kubelet/verify on w1: exit status 1: the kubelet has no certificate of the cluster's authority for 10.9.0.2:10250 after three minutes: the cluster has denied its request csr-abcde")
	assert.Contains(t, f.Error, why)
	assert.Contains(t, f.Hint, "systemctl restart kubelet")
	assert.NoFileExists(t, l.host("w2").root+servingFile, "the next wave is left as it is")

	l.host("w1").remove("/.fake/fail/serving")
	o = l.mustUp()
	assert.Contains(t, lines(o.changes), "w1 kubelet request certificate of the kubelet's server signed by the cluster")
	for _, h := range l.hosts {
		assert.FileExists(t, h.root+servingFile)
	}
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestNoKubeletIsTouchedWhileTheApproverDoesNotRun(t *testing.T) {
	t.Parallel()
	l := olderLab(t, 1, 1)
	l.host("m1").write("/.fake/fail/approver", "0/1 nodes are available: 1 Insufficient memory. ")
	o := l.up(t.Context())
	failed := failures(t, o, 1)
	assert.Contains(t, failed["m1"].Error, "pai-csr-approver, which approves kubelets' certificates, does not run after two minutes: 0/1 nodes are available: 1 Insufficient memory.")
	assert.Contains(t, failed["w1"].Error, "phase approver on m1, which this phase needs, has failed")
	assert.NotContains(t, l.host("w1").read(phases.KubeletDropIn), "serverTLSBootstrap: true")
	l.host("m1").remove("/.fake/fail/approver")
	l.mustUp()
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestTheClusterIsToldOfItsMachines(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.made()
	list := l.cluster + "/objects/machines"
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	var m corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(text, &m))
	assert.Equal(t, "kube-system/paictl-machines", m.Namespace+"/"+m.Name)
	assert.Equal(t, map[string]string{"m1": "10.9.0.1", "w1": "10.9.0.2", "w2": "10.9.0.3"}, m.Data)

	require.NoError(t, os.WriteFile(list, bytes.ReplaceAll(text, []byte("  w2: 10.9.0.3\n"), nil), 0o600))
	o := l.mustUpOf("w2")
	assert.Equal(t, []string{"m1 approver set configmap paictl-machines w2 added"}, splitLines(lines(o.changes)), "also where only the machine is meant")
	assert.Empty(t, lines(l.mustUpOf("w2").changes))

	_, left := l.removeNodes(t.Context(), RemoveOptions{}, "w2")
	assert.Equal(t, []string{"w2"}, left)
	text, err = os.ReadFile(list)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "w2: ")

	require.NoError(t, os.Remove(l.cluster+"/objects/approver"))
	assert.Contains(t, lines(l.mustUp().changes), "m1 approver run pai-csr-approver", "deleted, it comes back")
}

func TestAnUpgradeMovesNoOlderCluster(t *testing.T) {
	t.Parallel()
	l := olderLab(t, 1, 1)
	l.release(nextRelease, "")
	o := l.upgrade(t.Context(), UpgradeOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.NoFileExists(t, l.cluster+"/objects/approver")
	assert.NotContains(t, l.host("w1").read(phases.KubeletDropIn), "serverTLSBootstrap: true")
	assert.Contains(t, lines(l.mustUp().changes), "m1 approver run pai-csr-approver")
}

func TestWhetherKubeletsAreVerifiedIsSettledByWhatTheMastersSay(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	for name, tt := range map[string]struct {
		join, init, approver string
		whole, upgrading     bool
		selfSigned           bool
		unverified           bool
	}{
		"a new cluster":                               {join: "member\tno"},
		"an older one, all of it":                     {join: "member\tyes", init: "api\tup", whole: true},
		"an older one, a part":                        {join: "member\tyes", init: "api\tup", selfSigned: true, unverified: true},
		"an older one, by an upgrade":                 {join: "member\tyes", init: "api\tup", whole: true, upgrading: true, selfSigned: true, unverified: true},
		"one that is half moved, a part":              {join: "member\tyes", init: "api\tup\napprover\tx", unverified: true},
		"one that is moved, a part":                   {join: "member\tyes", init: "api\tup\napprover\tx", approver: "verifies\tyes"},
		"one whose approver is gone, a part":          {join: "member\tyes", init: "api\tup", approver: "verifies\tyes"},
		"one whose approver is gone, by an upgrade":   {join: "member\tyes", init: "api\tup", approver: "verifies\tyes", whole: true, upgrading: true},
		"one whose API is silent, and verifies":       {join: "member\tyes", init: "api\tdown", approver: "verifies\tyes", whole: true},
		"one whose API is silent, and doesn't verify": {join: "member\tyes", init: "api\tdown", whole: true, selfSigned: true, unverified: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := l.spec()

			sections := map[string]answer.Answer{}
			for phase, text := range map[string]string{engine.PhaseJoin: tt.join, engine.PhaseInit: tt.init, engine.PhaseApprover: tt.approver} {
				a, err := answer.Parse([]byte(text + "\n"))
				require.NoError(t, err)
				sections[phase] = a
			}
			w := &engine.World{Want: &engine.Desired{Spec: s, Upgrading: tt.upgrading}, Whole: tt.whole, Facts: map[string]*engine.Facts{"m1": {Sections: sections}}}
			w.Elect()
			assert.Equal(t, tt.selfSigned, w.Want.SelfSigned, "self-signed")
			assert.Equal(t, tt.unverified, w.Want.Unverified, "unverified")
		})
	}
}

// TestTheApproverHasTheRightsThatItNeeds runs the approver on a real API server, with the account and the roles of its manifest.
func TestTheApproverHasTheRightsThatItNeeds(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	manifest, _, err := phases.ApproverManifest(l.spec())
	require.NoError(t, err)
	list, err := phases.MachinesList(l.spec())
	require.NoError(t, err)
	c := kubetest.Start(t)
	for _, doc := range append(bytes.Split(manifest, []byte("\n---\n")), list) {
		create(t, c.Config, doc)
	}
	d, err := c.Client.AppsV1().Deployments("kube-system").Get(t.Context(), phases.ApproverProgram, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(2), *d.Spec.Replicas)

	const account = "system:serviceaccount:kube-system:pai-csr-approver"
	groups := []string{"system:serviceaccounts", "system:authenticated"}
	raw, err := clientcmd.LoadFromFile(kubetest.Kubeconfig(t))
	require.NoError(t, err)
	for _, user := range raw.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = account, groups
	}
	file := filepath.Join(t.TempDir(), "approver.conf")
	require.NoError(t, clientcmd.WriteToFile(*raw, file))
	who := rest.CopyConfig(c.Config)
	who.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: groups}
	own := kubernetes.NewForConfigOrDie(who)
	require.Eventually(t, func() bool { // the API server learns of roles a moment after they are made
		_, err1 := own.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		_, err2 := own.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "paictl-machines", metav1.GetOptions{})
		return err1 == nil && err2 == nil
	}, 30*time.Second, 50*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	said, done := &bytes.Buffer{}, make(chan error, 1)
	go func() { done <- csrapprover.Run(ctx, []string{"--kubeconfig", file}, said) }()

	who = rest.CopyConfig(c.Config)
	who.Impersonate = rest.ImpersonationConfig{UserName: "system:node:w1", Groups: []string{"system:nodes", "system:authenticated"}}
	node := kubernetes.NewForConfigOrDie(who).CertificatesV1().CertificateSigningRequests()
	made, err := node.Create(t.Context(), nodeRequest(t, "w1", "10.9.0.4"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := node.Get(t.Context(), made.Name, metav1.GetOptions{}) // kubelets may read the result
		return err == nil && len(now.Status.Conditions) == 1 && now.Status.Conditions[0].Type == certv1.CertificateApproved
	}, 30*time.Second, 50*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	assert.NotContains(t, said.String(), "forbidden")

	_, err = own.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "forbidden")
	_, err = own.CoreV1().ConfigMaps("kube-system").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "forbidden")
}

func create(t *testing.T, config *rest.Config, doc []byte) {
	t.Helper()
	var o unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal(doc, &o.Object))
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	kind := o.GroupVersionKind()
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	r := objects.Resource(plural)
	if o.GetNamespace() == "" {
		_, err = r.Create(t.Context(), &o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	} else {
		_, err = r.Namespace(o.GetNamespace()).Create(t.Context(), &o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	}
	require.NoError(t, err, "%s", doc)
}

func nodeRequest(t *testing.T, node, address string) *certv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	pem, err := cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, []string{node}, []net.IP{net.ParseIP(address)})
	require.NoError(t, err)
	return &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}, Spec: certv1.CertificateSigningRequestSpec{
		Request: pem, SignerName: certv1.KubeletServingSignerName, Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth}}}
}

func TestAMachineThatCouldNotBeMovedIsNamedWhenAPIServersBeginToVerify(t *testing.T) {
	t.Parallel()
	l := olderLab(t, 1, 2)
	l.host("w2").server.Close() // its node runs, but no one can log in
	o := l.up(t.Context())
	require.ErrorContains(t, o.err, "w2")
	assert.True(t, slices.ContainsFunc(o.events, func(e engine.Event) bool {
		return e.Kind == engine.EventWarning && e.Host == "m1" && strings.HasPrefix(e.Message, "kubectl logs and exec don't reach w2 from now on")
	}), "%s", l.story(o))
}
