package store

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/secret"
)

func TestFilesAreShownWithoutSecretsAndWithTheirComments(t *testing.T) {
	got := New(nil).Show(nil, "conf", map[string][]byte{
		config.LayoutFile:     []byte("# of the lab\nssh: {password: 'hunter2!'}  # was hunter2!\nmachine-list:\n- ssh: {password: \"********\"}\n"),
		config.KubernetesFile: []byte("kubernetes: [\n"),
		config.RolesFile:      []byte("x: \"secret:pai-credentials\"\n"),
		config.ServicesFile:   []byte("grafana: {admin-password: s3cr3t-1}\n"),
	})
	assert.Equal(t, "# of the lab\nssh: {password: \"********\"}  # was \"********\"\nmachine-list:\n- ssh: {password: \"********\"}\n", string(got.Files[config.LayoutFile]))
	assert.Len(t, got.Files, 1)
	assert.ErrorContains(t, got.Errors[config.KubernetesFile], "not readable as YAML")
	assert.ErrorContains(t, got.Errors[config.RolesFile], "secret:pai-credentials")
	assert.ErrorContains(t, got.Errors[config.ServicesFile], "it is unknown which settings of services are secret")
	assert.Contains(t, got.Secrets, secret.String("hunter2!"))
	assert.Contains(t, got.Secrets, secret.String("s3cr3t-1"), "of a file that isn't shown, too")
}
