package templates

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Else all people have the address of a node.
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
