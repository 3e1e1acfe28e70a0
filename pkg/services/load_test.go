package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
)

// held is a Pusher that returns stored files or an error.
type held struct {
	files map[string][]byte
	err   error
}

func (h held) Pull(context.Context) (*store.Copy, error) {
	if h.err != nil {
		return nil, h.err
	}
	return &store.Copy{Revision: store.Revision{Number: 3}, Files: h.files}, nil
}

func wholeFiles(sections string) map[string][]byte {
	return map[string][]byte{
		config.LayoutFile: []byte(`apiVersion: paictl.openpai.org/v1
kind: Layout
ssh: {username: root, password: pass-of-ssh}
machine-sku:
  cpu: {mem: 16Gi, cpu: {vcore: 8}, os: ubuntu22.04, discovered: true}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: cpu, roles: [master]}
  - {hostname: w1, hostip: 10.0.0.2, machine-type: cpu, roles: [worker]}
`),
		config.RolesFile: []byte(rolesText),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\n" +
			"kubernetes: {version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.0.0.1}\n"),
		config.ServicesFile: []byte(`apiVersion: paictl.openpai.org/v1
kind: ServicesConfiguration
cluster:
  common: {cluster-id: lab, data-path: /data}
  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}
` + sections),
	}
}

func TestTheClustersCopyIsWhatIsStarted(t *testing.T) {
	d, err := FromCluster(held{files: wholeFiles("prometheus: {enabled: false}\n")}, "")(t.Context())
	require.NoError(t, err)
	assert.False(t, d.Catalogue.Get("prometheus").Enabled)
	assert.True(t, d.Catalogue.Get("storage").Enabled)
	assert.Equal(t, 3, d.Revision.Number)
}

func TestWithoutAConfigurationTheRemedyIsToPushOne(t *testing.T) {
	_, err := FromCluster(held{err: store.ErrNone}, "")(t.Context())
	require.ErrorIs(t, err, store.ErrNone)
	assert.Equal(t, "push one with: paictl config push -p DIR", hint.Of(err))
}

func TestAMistakeInTheClustersCopyNamesItsLineAndTheRemedy(t *testing.T) {
	d, err := FromCluster(held{files: wholeFiles("prometheus: {retentoin: 3d}\n")}, "")(t.Context())
	require.NoError(t, err, "services can be looked at and stopped")
	require.NotNil(t, d.Catalogue.Get("prometheus"))
	err = d.Mistakes
	require.ErrorAs(t, err, new(config.Findings))
	assert.ErrorContains(t, err, "services-configuration.yaml:6:")
	assert.ErrorContains(t, err, "retentoin")
	assert.Contains(t, hint.Of(err), "paictl config push")
}

func TestAFolderThatWasNotPushedIsTold(t *testing.T) {
	files, dir := wholeFiles(""), t.TempDir()
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	load := Compared(FromCluster(held{files: files}, dir), dir)
	d, err := load(t.Context())
	require.NoError(t, err)
	assert.Empty(t, d.Notes)

	require.NoError(t, os.WriteFile(filepath.Join(dir, config.ServicesFile), wholeFiles("grafana: {enabled: false}\n")[config.ServicesFile], 0o600))
	d, err = load(t.Context())
	require.NoError(t, err)
	require.Len(t, d.Notes, 1)
	assert.Contains(t, d.Notes[0].Message, "services-configuration.yaml in "+dir+" differs from the cluster's copy")
	assert.Contains(t, d.Notes[0].Remedy, "paictl config push -p "+dir)

	require.NoError(t, os.Remove(filepath.Join(dir, config.ServicesFile)))
	d, err = load(t.Context())
	require.NoError(t, err, "a folder from the settings that is gone stops nobody")
	assert.Contains(t, d.Notes[0].Message, "can't be compared")
}

func TestAnErrorOfTheClusterIsNotThatOfAFolder(t *testing.T) {
	boom := errors.New("boom")
	_, err := Compared(FromCluster(held{err: boom}, ""), t.TempDir())(t.Context())
	assert.ErrorIs(t, err, boom)
}
