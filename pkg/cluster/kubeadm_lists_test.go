package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/phases"
)

func TestListsOfKubeadmAreAddedToPaictlsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	api := func(extra map[string]any) map[string]any {
		t.Helper()
		l.conf.Kubernetes.Kubernetes.Extra.Kubeadm = map[string]any{"apiServer": extra}
		conf, err := phases.ClusterConfiguration(l.spec().Fresh())
		require.NoError(t, err)
		return conf["apiServer"].(map[string]any)
	}
	own := api(nil)
	assert.Equal(t, []any{"10.9.0.1", "m1", "127.0.0.1"}, own["certSANs"])
	assert.Equal(t, []any{"10.9.0.1", "m1", "127.0.0.1", "api.example.org"}, api(map[string]any{"certSANs": []any{"api.example.org", "m1"}})["certSANs"])

	volume := map[string]any{"name": "mine", "hostPath": "/a", "mountPath": "/a"}
	assert.Len(t, api(map[string]any{"extraVolumes": []any{volume}})["extraVolumes"], len(own["extraVolumes"].([]any))+1)
	env := []any{map[string]any{"name": "A", "value": "b"}}
	assert.Subset(t, api(map[string]any{"extraEnvs": env})["extraEnvs"], env)
	// A flag of the operator replaces paictl's flag with the same name. Nil and an empty list remove no flags.
	args := api(map[string]any{"extraArgs": []any{map[string]any{"name": "audit-log-maxage", "value": "90"}}})["extraArgs"].([]any)
	assert.Len(t, args, len(own["extraArgs"].([]any)))
	assert.Contains(t, args, map[string]any{"name": "audit-log-maxage", "value": "90"})
	for _, nothing := range []any{nil, []any{}} {
		got := api(map[string]any{"extraArgs": nothing, "extraVolumes": nothing, "certSANs": nothing})
		assert.Equal(t, own["extraArgs"], got["extraArgs"])
		assert.Equal(t, own["extraVolumes"], got["extraVolumes"])
		assert.Equal(t, own["certSANs"], got["certSANs"])
	}
}
