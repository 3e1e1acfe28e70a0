package services

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"gopkg.in/yaml.v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/kube"
)

func TestPasswordsOfTheServicesAreMadeOnceAndKept(t *testing.T) {
	l := newLab(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "job-controller-token", Namespace: kube.SystemNamespace}, Data: map[string][]byte{"token": []byte("of the controller")}})
	require.NoError(t, l.start())
	read := func() map[string][]byte {
		s, err := l.client.CoreV1().Secrets(kube.SystemNamespace).Get(t.Context(), "metrics-access", metav1.GetOptions{})
		require.NoError(t, err)
		return s.Data
	}
	data := read()
	password := string(data["password"])
	assert.GreaterOrEqual(t, len(password), 26, "128 bits")
	var web struct {
		Users map[string]string `yaml:"basic_auth_users"`
	}
	require.NoError(t, yaml.Unmarshal(data["web.yml"], &web))
	require.NoError(t, bcrypt.CompareHashAndPassword([]byte(web.Users["pai"]), []byte(password)))
	assert.NotContains(t, string(data["web.yml"]), password)
	token, err := l.client.CoreV1().Secrets(kube.SystemNamespace).Get(t.Context(), "job-controller-token", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "of the controller", string(token.Data["token"]))
	told, err := json.Marshal(l.story.events)
	require.NoError(t, err)
	assert.NotContains(t, string(told), password)
	assert.Contains(t, string(told), "create Secret pai-system/metrics-access")
	for _, r := range l.releases.have {
		values, err := json.Marshal(r.Values)
		require.NoError(t, err)
		assert.NotContains(t, string(values), password)
		assert.Contains(t, string(values), `"accessSecret":"metrics-access"`)
	}

	require.NoError(t, l.Restart(t.Context(), l.options()))
	assert.Equal(t, data, read(), "programs that run have it")
	require.NoError(t, l.client.CoreV1().Secrets(kube.SystemNamespace).Delete(t.Context(), "metrics-access", metav1.DeleteOptions{}))
	require.NoError(t, l.start())
	assert.NotEqual(t, data, read(), "a new one is made where it was removed")
}

func TestADryRunMakesNoPasswords(t *testing.T) {
	l := newLab(t)
	o := l.options()
	o.DryRun = true
	require.NoError(t, l.Start(t.Context(), o))
	assert.Empty(t, l.writes())
}

func TestPoliciesThatNothingEnforcesAreTold(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: kube.SystemNamespace, Labels: map[string]string{labelPartOf: manager}}}
	other := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "default"}}
	set := func(name string) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}}
	}
	for name, c := range map[string]struct {
		objects []runtime.Object
		told    bool
	}{
		"flannel alone":                    {[]runtime.Object{policy, set("kube-flannel-ds")}, true},
		"flannel, and no policy of ours":   {[]runtime.Object{other, set("kube-flannel-ds")}, false},
		"flannel with Calico's policies":   {[]runtime.Object{policy, set("kube-flannel-ds"), set("canal")}, false},
		"flannel with Kubernetes' own":     {[]runtime.Object{policy, set("kube-flannel-ds"), set("kube-network-policies")}, false},
		"Cilium":                           {[]runtime.Object{policy, set("cilium")}, false},
		"a network that isn't known":       {[]runtime.Object{policy, set("other-net")}, false},
		"node-exporter and no pod network": {[]runtime.Object{policy, set("node-exporter")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			// The first release of a start includes the platform's NetworkPolicies.
			before := slices.DeleteFunc(slices.Clone(c.objects), func(o runtime.Object) bool { return o == policy })
			l := newLab(t, before...)
			var once sync.Once
			l.releases.hold = func(string, string) {
				once.Do(func() {
					if len(before) < len(c.objects) {
						_, err := l.client.NetworkingV1().NetworkPolicies(policy.Namespace).Create(t.Context(), policy.DeepCopy(), metav1.CreateOptions{})
						assert.NoError(t, err)
					}
				})
			}
			warned := func() bool {
				return slices.ContainsFunc(l.story.of(EventWarning), func(e Event) bool { return strings.Contains(e.Message, "flannel doesn't enforce") })
			}
			require.NoError(t, l.start())
			assert.Equal(t, c.told, warned())
			require.NoError(t, l.start())
			assert.False(t, warned(), "it was said")
		})
	}
}
