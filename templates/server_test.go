package templates

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Without externalTrafficPolicy: Local, all requests would come from the address of a node.
func TestTheServerSeesTheAddressesOfPeople(t *testing.T) {
	for kind, want := range map[string]string{"LoadBalancer": "Local", "NodePort": "Local", "ClusterIP": ""} {
		manifest, err := render(t, load(t, "rest-server"), map[string]any{"expose": "service", "service": map[string]any{"type": kind}})
		require.NoError(t, err)
		seen := 0
		for _, o := range objects(t, manifest) {
			if o.GetKind() != "Service" {
				continue
			}
			seen++
			got, _, err := unstructured.NestedString(o.Object, "spec", "externalTrafficPolicy")
			require.NoError(t, err)
			assert.Equal(t, want, got, kind)
		}
		assert.Equal(t, 1, seen)
	}
}

func TestValuesOfTheServersCertificateThatDoNotGoTogetherAreRefused(t *testing.T) {
	public := func(more map[string]any) map[string]any {
		out := map[string]any{"names": []any{"gpu.example.org"}, "acme": map[string]any{"enabled": true, "acceptTerms": true}}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	_, err := render(t, load(t, "rest-server"), public(nil))
	require.NoError(t, err)
	for says, more := range map[string]map[string]any{
		"names has no public name":             {"names": []any{}},
		"acme.acceptTerms":                     {"acme": map[string]any{"enabled": true}},
		"acme.enabled and tls.secretName":      {"tls": map[string]any{"secretName": "mine"}},
		"behind an Ingress the authority does": {"expose": "ingress"},
	} {
		_, err := render(t, load(t, "rest-server"), public(more))
		require.ErrorContains(t, err, says)
	}
}
