package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/version"
)

func TestAConfigurationOfAnotherKubernetesThanTheBundlesIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.conf.Kubernetes.Kubernetes.Version = "v1.99.0"
	_, err := engine.NewSpec(l.conf, l.bundle)
	var refused *engine.PreflightError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 4, refused.ExitCode())
	assert.ErrorContains(t, err, "the configuration requires Kubernetes v1.99.0, but the bundle in ")
	assert.ErrorContains(t, err, " has "+version.Kubernetes+" (nothing was changed)")
	assert.Contains(t, hint.Of(err), "use a bundle of v1.99.0 (--bundle), or set kubernetes.version in kubernetes-configuration.yaml to "+version.Kubernetes)
	_, err = engine.NewSpec(l.conf, nil)
	require.NoError(t, err, "what installs nothing needs no bundle")
}

// release switches the lab to a bundle with another release or build.
func (l *lab) release(kubernetes, build string) {
	l.bundle = newBundleOf(l.t, kubernetes, build)
	l.conf.Kubernetes.Kubernetes.Version = kubernetes
}

func TestMembersAreBroughtToNoOtherKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, bundle, want, remedy string }{
		{"newer", "v1.37.0", "the machine runs Kubernetes " + version.Kubernetes + ", the bundle has v1.37.0", "to bring the cluster to v1.37.0: paictl cluster upgrade; otherwise use the bundle of " + version.Kubernetes + " (--bundle)"},
		{"older", "v1.35.9", "the machine runs Kubernetes " + version.Kubernetes + ", the bundle has v1.35.9", "use the bundle of " + version.Kubernetes + " (--bundle); Kubernetes can't go back to an earlier minor release"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1, 1)
			l.made()
			before := l.bytes()
			l.release(c.bundle, "")
			o := l.up(t.Context())
			var refused *engine.PreflightError
			require.ErrorAs(t, o.err, &refused)
			require.Len(t, refused.Findings, 2)
			for i, host := range []string{"m1", "w1"} {
				assert.Equal(t, host, refused.Findings[i].Host)
				assert.Equal(t, c.want, refused.Findings[i].Message)
				assert.Equal(t, c.remedy, refused.Findings[i].Remedy)
			}
			assert.Equal(t, before, l.bytes(), "nothing was changed")
		})
	}
}

func TestANewMachineDoesNotJoinAClusterOfAnotherKubernetes(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	only := func(host string) func(*labOptions, *ssh.Options) {
		return func(o *labOptions, _ *ssh.Options) { o.Limit = []string{host} }
	}
	require.NoError(t, l.up(t.Context(), only("m1")).err)
	l.release("v1.37.0", "")
	o := l.up(t.Context(), only("w1"))
	require.ErrorContains(t, o.err, "m1: the machine runs Kubernetes "+version.Kubernetes)
}

func TestAnAPIServerOfAnotherKubernetesIsSeenBeforeAnUpgradeThatBeganElsewhereGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	l.host("m1").write("/etc/kubernetes/manifests/kube-apiserver.yaml", "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    image: registry.example.org:5000/k8s/kube-apiserver:v1.35.2\n    imagePullPolicy: IfNotPresent\n")
	o := l.up(t.Context())
	require.ErrorContains(t, o.err, "m1: the machine runs Kubernetes v1.35.2, the bundle has "+version.Kubernetes)
}

func TestARebuiltBundleOfTheSameKubernetesIsInstalled(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	l.release(version.Kubernetes, "2")
	o := l.mustUp()
	assert.Contains(t, lines(o.changes), "w1 kubelet update /usr/local/bin/kubelet kubelet v1")
	assert.Empty(t, l.mustUp().changes)
}
